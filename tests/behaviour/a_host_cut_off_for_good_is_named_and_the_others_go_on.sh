#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A host's link is cut for good, of a run with `--on_failure leave`: `run --follow` and `logs -f` show the others' lines and try again
# (for how long, log_follow_test shows), a new `logs -f` names the host and ends with 1; `status` names it, `--watch` keeps the others'
# rows fresh; `kill` ends the others, names it and keeps the killfile, and ends the rest when the host is back.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3
touch code
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
# shellcheck disable=SC2016
timeout 280 "$DTOOL" run --follow --on_failure leave --connect_timeout 3 --runs_on "$DTOOL_LAB_HOSTS" --extra_tag long -- \
  bash -c 'for ((i = 0; ; i++)); do echo "line $i"; sleep 0.1; [ ! -e /root/end ] || exit 0; done' >"$work/run.out" 2>"$work/run.err" </dev/null &
running=$!
has_begun() { for id in 0 1 2; do grep -q "^machine$id: line 10$" "$1" || return 1; done; }
eventually 30 has_begun "$work/run.out"
timeout 280 "$DTOOL" logs -f bash_long --connect_timeout 3 >"$work/logs.out" 2>"$work/logs.err" </dev/null &
following=$!
timeout --foreground 280 "$DTOOL" status bash_long --watch --connect_timeout 3 --interval 0.5 >"$work/watch.out" 2>"$work/watch.err" </dev/null &
watching=$!
expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" --extra_tag deaf -- bash -c 'trap "" TERM; while :; do sleep 1; done'
deaf=$(json 'd["run_id"]')
eventually 30 has_begun "$work/logs.out"
eventually 30 grep -q 'running on 3 of 3' "$work/watch.out"

# In the middle of a kill, whose script does its work on that host all the same.
timeout 280 "$DTOOL" kill --grace 3 --yes --delete "$deaf" >"$out" 2>"$err" </dev/null &
killing=$!
marked() { [[ -e $DTOOL_LAB_FOLDER/host3/root/.dtool/runs/$deaf/machine2/killed ]]; }
eventually 20 marked
fault cut h3
expect_ended 1 "$killing" "dtool kill, the link cut during it"
expect_error "^  ${address[2]}: the connection was lost"
expect_error "$deaf: [0-9]+ processes ended on .*; the killfile is kept"
expect_no_process_with "$deaf"

for each in run logs; do eventually 60 grep -q '^machine2: the connection was lost: .*; trying again (Ctrl-C ends this, not the run)$' "$work/$each.err"; done
eventually 60 grep -q '^2 .* unreachable ' "$work/watch.out"
# The others' rows and lines come while it is tried again.
blocks() { grep -c '^0 .* running ' "$work/watch.out"; }
seen=$(blocks) lines=$(wc -l <"$work/run.out")
goes_on() { (($(blocks) > seen + 2 && $(wc -l <"$work/run.out") > lines + 20)); }
eventually 60 goes_on
pkill -INT -P "$watching"
expect_ended 130 "$watching"
expect_exit 1 dtool status --connect_timeout 1 bash_long
expect_output 'running on 2 of 3 machines, 1 unreachable'
expect_output "^cause: machine 2 \(${address[2]}\) cannot be asked: (no answer|cannot connect)"

for waiting in "$running" "$following"; do
  pkill -INT -P "$waiting"
  expect_ended 130 "$waiting"
done
# The others end well: that does not make it a run that ended well.
for host in 1 2; do on $host touch /root/end; done
expect_exit 1 dtool logs -f --connect_timeout 1 bash_long
expect_error '1 of 3 hosts failed'
expect_error "^  ${address[2]}: (no answer|cannot connect)"
for id in 0 1; do
  log=$(cat "$DTOOL_LAB_FOLDER/host$((id + 1))"/root/here/experiment_output/*long*/machine$id.log)
  expect_equal "$log" "$(sed -n "s/^machine$id: //p" "$out")"
  for each in run logs; do
    [[ $log == "$(sed -n "s/^machine$id: //p" "$work/$each.out")"* ]] || fail "$each shows other lines of machine $id"
  done
done

expect_exit 1 dtool kill --connect_timeout 1 --yes --delete --all
expect_error 'the killfile is kept'
fault mend h3
# For a moment the kernel remembers that nobody answered there.
eventually 20 dtool command --runs_on "${address[2]}" --command true
expect_exit 0 dtool kill --yes --delete --all
expect_equal '' "$(ls "$HOME/.dtool/killfiles")"
expect_equal '' "$(on 3 pgrep -f 'line ' || true)"
