#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Where a host has no screen, tmux holds a run's session, by a server of its own; where tmux is missing too, the session goes on
# without a terminal, and attach follows its log and says why. check, config, run, status, logs and kill are the same on all.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program tmux
lab 3 --private_tmp
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
fault hide h1 screen
fault hide h2 screen
fault hide h2 tmux
fault hide h1 tail
# A server of the user's own, whom nothing of this concerns.
on 1 tmux new-session -d -s mine 'sleep 1000'

expect_exit 0 dtool check --runs_on "$DTOOL_LAB_HOSTS" --no_trainer
expect_output "^(terminal)? +no screen, so tmux [0-9.a-z]+ takes its place +${address[0]}$"
expect_output "^(terminal)? +! neither screen nor tmux is there: .* attach shows their logs +${address[1]}$"
expect_output "hint: on Debian: dtool command --command 'sudo apt-get install -y tmux' --runs_on ${address[1]}$"

printf 'echo "set up, $(id -un)"\n' >set_up.sh
expect_exit 0 dtool config --runs_on "$DTOOL_LAB_HOSTS" --config_script set_up.sh --follow
expect_equal 3 "$(grep -c "set up, $log_in_user" "$out" "$err" | awk -F : '{ n += $2 } END { print n }')"

mkdir code
cd code
cat >train.sh <<'END'
echo "ignores $(grep SigIgn /proc/self/status)"
until [ -e ~/stop ]; do
  echo "a line of $RANK"
  sleep 0.3
done
exit 3
END
expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" -- bash train.sh
id=$(json 'd["run_id"]')
for i in 0 1 2; do
  expect_equal "$(printf 'tmux\nnone\nscreen\n' | sed -n "$((i + 1))p")" "$(on $((i + 1)) cat ".dtool/runs/$id/machine$i/holder")"
done
expect_exit 0 dtool status "$id" --json
expect_equal 'running running running' "$(json '" ".join(m["state"] for m in d["machines"])')"
# Neither Ctrl-C nor Ctrl-\ is ignored by what runs there.
all_have_begun() { dtool logs "$id" >"$out" 2>&1 && [[ $(grep -c 'ignores SigIgn:.*[08]$' "$out") == 3 ]]; }
eventually 20 all_have_begun

# A terminal with a shell in it, which ends by itself should the test not come so far; a shell ignores TERM.
pane() { tmux -L "dtool-$$" -f /dev/null "$@"; }
# Sentences break at blanks there.
shows() { pane capture-pane -pJ >"$work/pane" && { grep -Eq -e "$1" "$work/pane" || tr -s '\n ' ' ' <"$work/pane" | grep -Eq -e "$1"; }; }
pane new-session -d -x 100 -y 30 'timeout --signal=KILL 170 bash --norc'
attaches() {
  pane send-keys -l "clear; $DTOOL attach $1; echo code=\$?"
  pane send-keys Enter
}
attaches "$id --machine 0"
eventually 30 shows '^a line of 0'
pane send-keys C-a d
eventually 30 shows '^code=0'
eventually 5 shows 'machine0 of .*: detached, it goes on'
attaches "$id --machine 1"
eventually 30 shows 'machine1 of .* has no terminal, since neither screen nor tmux was there when it started: its log'
eventually 30 shows 'a line of 1'
pane send-keys C-c
eventually 30 shows '^code=130'
expect_exit 0 dtool status "$id" --json
expect_equal 'running running running' "$(json '" ".join(m["state"] for m in d["machines"])')"

# The end of the run, seen from there.
attaches "$id --machine 1"
eventually 30 shows 'a line of 1'
on 2 touch stop
eventually 30 shows '^code=0'
eventually 5 shows 'machine1 of .* has ended with exit code'
pane kill-server
eventually 20 expect_no_process_with "$id"

# What kill ends, and what it leaves.
on 2 rm stop
expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" -- bash -c 'setsid sleep 1000 & sleep 1000'
id=$(json 'd["run_id"]')
expect_exit 0 dtool kill --yes --delete "$id"
expect_error "$id: [0-9]+ processes ended on .*; none is left"
expect_no_process_with "$id"
expect_equal 'mine' "$(on 1 tmux list-sessions -F '#S')"
expect_equal '' "$(on 1 pgrep -f "$id" || true)"
