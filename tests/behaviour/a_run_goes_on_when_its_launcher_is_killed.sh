#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The launcher is killed with SIGKILL while it follows a run, another while it ends one, a third while it fetches: the run goes on, nothing
# that they had started on the hosts stays, and `status`, `logs -f`, `kill` and `fetch`, from any machine with the killfile and the keys,
# take it up where they were.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3
connects_anew
touch code
# shellcheck disable=SC2016
"$DTOOL" run --follow --runs_on "$DTOOL_LAB_HOSTS" -- bash -c 'head -c 30000000 /dev/urandom >"$DTOOL_OUTPUT_DIR/large"
  for ((i = 0; ; i++)); do echo "line $i"; sleep 0.1; [ ! -e /root/end ] || exit 0; done' >"$work/run.out" 2>"$work/run.err" </dev/null &
launcher=$!
has_begun() { for id in 0 1 2; do grep -q "^machine$id: line 10$" "$1" || return 1; done; }
eventually 30 has_begun "$work/run.out"
run_id=$(basename "$HOME"/.dtool/killfiles/*.killfile .killfile)
# What each host runs but for the run itself, whose number of processes stays.
log_ins() { for host in 1 2 3; do on $host pgrep -f '^sshd: (root|ann)@' || true; on $host pgrep -fx 'tail -c .*' || true; done; }
[[ -n $(log_ins) ]] || fail 'the test does not test: nobody is logged in'
kill -KILL "$launcher"
wait "$launcher" 2>/dev/null || true
nobody_is_logged_in() { [[ -z $(log_ins) ]]; }
eventually 20 nobody_is_logged_in

# Another machine: a home with the killfile and the keys.
other=$work/other
mkdir -p -m 700 "$other/.dtool/killfiles"
cp "$HOME/.dtool/killfiles/$run_id.killfile" "$other/.dtool/killfiles/"
cp "$HOME/.dtool/config.toml" "$other/.dtool/"
cp -r "$HOME/.ssh" "$other/"
expect_exit 0 env HOME="$other" "$DTOOL" status
expect_output "^$run_id: running on 3 of 3 machines"
timeout 100 env HOME="$other" "$DTOOL" logs -f >"$work/logs.out" 2>"$work/logs.err" </dev/null &
following=$!
eventually 30 has_begun "$work/logs.out"

# A fetch that is killed leaves no file under its name that is not whole.
fault slow h1 rate 20mbit
"$DTOOL" fetch "$run_id" fetched --machine 0 --only large >/dev/null 2>&1 </dev/null &
fetching=$!
is_coming() { compgen -G 'fetched/machine0/.dtool-partial/.large.*' || compgen -G 'fetched/machine0/.large.*'; }
eventually 30 is_coming >/dev/null
kill -KILL "$fetching"
wait "$fetching" 2>/dev/null || true
expect_no_file fetched/machine0/large
fault mend h1
no_rsync_is_left() { ! pgrep -f 'rsync .*fetched/machine[0]'; }
eventually 20 no_rsync_is_left
expect_exit 0 dtool fetch "$run_id" fetched --machine 0 --only large
cmp fetched/machine0/large "$DTOOL_LAB_FOLDER/host1/root/here/experiment_output/$run_id/large"

# The run ends by itself, as the second follower says.
for host in 1 2 3; do on $host touch /root/end; done
expect_ended 0 "$following"
for id in 0 1 2; do
  expect_equal "$(cat "$DTOOL_LAB_FOLDER/host$((id + 1))/root/here/experiment_output/$run_id/machine$id.log")" "$(sed -n "s/^machine$id: //p" "$work/logs.out")"
done
expect_exit 0 dtool kill --yes --delete "$run_id"

# A kill that is killed in its grace: the next one ends what is left.
expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" -- bash -c 'trap "" TERM; while :; do sleep 930214; done'
run_id=$(json 'd["run_id"]')
"$DTOOL" kill --yes --delete --grace 60 "$run_id" >/dev/null 2>&1 </dev/null &
killing=$!
is_marked() { for id in 0 1 2; do [[ -e $DTOOL_LAB_FOLDER/host$((id + 1))/root/.dtool/runs/$run_id/machine$id/killed ]] || return 1; done; }
eventually 20 is_marked
kill -KILL "$killing"
wait "$killing" 2>/dev/null || true
expect_file "$HOME/.dtool/killfiles/$run_id.killfile"
expect_exit 0 dtool kill --yes --delete --grace 0.5 "$run_id"
expect_error 'none is left'
expect_no_process_with "$run_id"
expect_equal '' "$(ls "$HOME/.dtool/killfiles")"
eventually 20 nobody_is_logged_in
