#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A host's link is cut for five seconds while `run --follow`, `logs -f` and `status --watch` look on, then during `kill`: all go on over
# the connections that they have, or make theirs when the link is back; no line is lost or comes twice, and each ends as without it.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3
touch code
# shellcheck disable=SC2016
timeout 100 "$DTOOL" run --follow --runs_on "$DTOOL_LAB_HOSTS" -- \
  bash -c 'for ((i = 0; i < 60000; i++)); do echo "line $i"; [ ! -e /root/end ] || exit 0; sleep 0.01; done' >"$work/run.out" 2>"$work/run.err" </dev/null &
running=$!
has_begun() { for id in 0 1 2; do grep -q "^machine$id: line 10$" "$1" || return 1; done; }
eventually 30 has_begun "$work/run.out"
timeout 100 "$DTOOL" logs -f >"$work/logs.out" 2>"$work/logs.err" </dev/null &
following=$!
timeout 100 "$DTOOL" status --watch --interval 0.3 >"$work/watch.out" 2>"$work/watch.err" </dev/null &
watching=$!
eventually 30 has_begun "$work/logs.out"
eventually 30 grep -q 'running on 3 of 3' "$work/watch.out"

fault cut h2
sleep 5
at_the_mend=$(grep -c '^machine1: ' "$work/run.out")
fault mend h2
has_more() { (($(grep -c '^machine1: ' "$work/run.out") > at_the_mend + 500)); }
eventually 30 has_more
for host in 1 2 3; do on $host touch /root/end; done
for waiting in "$running" "$following" "$watching"; do
  expect_ended 0 "$waiting"
done
for host in 1 2 3; do
  log=$(echo "$DTOOL_LAB_FOLDER/host$host"/root/here/experiment_output/*/machine$((host - 1)).log)
  for each in run logs; do expect_equal "$(cat "$log")" "$(sed -n "s/^machine$((host - 1)): //p" "$work/$each.out")"; done
done
tail -n 6 "$work/watch.out" | grep -q 'ended on 3 machines' || fail "status --watch does not tell the end: $(tail -n 6 "$work/watch.out")"

# kill connects while the link is down, and is in the middle of its grace when it goes.
start() { expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" --extra_tag "$1" -- bash -c 'trap "" TERM; echo ready; while :; do sleep 1; done'; }
for when in before during; do
  start $when
  run_id=$(json 'd["run_id"]')
  [[ $when == during ]] || fault cut h2
  timeout 100 "$DTOOL" kill --grace 4 --yes --delete "$run_id" >"$out" 2>"$err" </dev/null &
  killing=$!
  marked() { [[ -e $DTOOL_LAB_FOLDER/host2/root/.dtool/runs/$run_id/machine1/killed ]]; }
  [[ $when == before ]] || { eventually 20 marked && fault cut h2; }
  sleep 5
  fault mend h2
  expect_ended 0 "$killing" "dtool kill, the link cut $when it"
  expect_error 'none is left'
  expect_no_process_with "$run_id"
  expect_no_file "$HOME/.dtool/killfiles/$run_id.killfile"
done
