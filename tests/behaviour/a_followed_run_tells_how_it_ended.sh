#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool run --follow` prints every machine's log and ends as the run does: which machine failed and how, a sibling rank
# ended with the one that failed; it can be left with Ctrl-C while the run goes on, and a machine that is killed says so.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
touch code
follow() { timeout 60 "$DTOOL" run --follow --runs_on "$DTOOL_LAB_HOSTS" "$@"; }

# shellcheck disable=SC2016
fails='for i in 1 2 3; do echo "line $i of $RANK"; done; echo "to stderr" >&2; [ "$RANK" != 1 ] || { echo "why it failed"; exit 7; }'
expect_exit 0 follow -- echo well
expect_equal 3 "$(grep -c '^machine[012]: well$' "$out")"
expect_exit 1 follow -- bash -c "$fails"
for id in 0 1 2; do expect_output "^machine$id: line 3 of $id"; done
expect_output '^machine2: to stderr'
expect_output '^machine1: why it failed'
expect_error '1 of 3 hosts failed'
expect_error "^  ${address[1]}: exit code 7"
expect_exit 1 timeout 60 "$DTOOL" run --json --follow --runs_on "$DTOOL_LAB_HOSTS" -- bash -c "$fails"
expect_equal '1 7' "$(json '"%d %d" % (d["exit_code"], d["failures"][0]["exit_code"])')"

# The cause stands there once, and last.
timeout 60 "$DTOOL" run --follow --runs_on "$DTOOL_LAB_HOSTS" -- bash -c "$fails" >"$work/both" 2>&1 </dev/null || true
expect_equal 1 "$(grep -Ec 'the run failed: |the cause: ' "$work/both")"
[[ $(tail -n 1 "$work/both") =~ ^dtool:\ the\ cause:\ rank\ 1\ on\ machine\ 1\ .*:\ why\ it\ failed$ ]] || fail "the last line is '$(tail -n 1 "$work/both")'"

# A terminal shows it in red.
expect_exit 1 dtool run --color always --follow --runs_on local --no_sync -- bash -c 'echo "ValueError: red"; exit 1'
expect_equal $'\e[31mdtool:\e[0m \e[31mthe cause: rank 0 on machine 0 (local) ended with exit code 1: ValueError: red\e[0m' "$(tail -n 1 "$err")"

# One of two processes fails: the other, deaf to TERM, is ended, and the exit code is the failing one's.
# shellcheck disable=SC2016
expect_exit 1 follow --nproc_per_node 2 -- bash -c '[ "$RANK" != 3 ] || { sleep 0.5; exit 9; }; [ "$GROUP_RANK" = 1 ] || exit 0; trap "" TERM; sleep 554433; sleep 554433'
expect_output '^machine1: dtool: rank 3 on machine 1 ended with exit code 9'
expect_error "^  ${address[1]}: exit code 9"
expect_exit 1 follow -- bash -c 'kill -SEGV $$'
expect_error ': exit code 139 \(signal 11\)'
expect_exit 1 follow -- bash -c '/no/such/program'
expect_error ': exit code 127'
expect_output '/no/such/program'

# Ctrl-C leaves the run going.
timeout --foreground 60 "$DTOOL" run --follow --runs_on "$DTOOL_LAB_HOSTS" --extra_tag stays -- bash -c 'echo ready; sleep 665544' >"$out" 2>"$err" </dev/null &
waiting=$!
ready() { [[ $(grep -c ready "$out") == 3 ]]; }
eventually 30 ready
pkill -INT -P "$waiting"
expect_ended 130 "$waiting" 'dtool run --follow, interrupted'
expect_error 'interrupted: the run goes on by itself'
run_id=$(basename "$(ls "$HOME"/.dtool/killfiles/*stays*)" .killfile)
expect_error "end it with: dtool kill $run_id"
expect_equal 3 "$(pgrep -fc '^sleep 665544')"

# Another one that is followed is killed from elsewhere.
: >"$out"
timeout 60 "$DTOOL" run --follow --runs_on "$DTOOL_LAB_HOSTS" --extra_tag killed -- bash -c 'echo ready; sleep 776655' >"$out" 2>"$err" </dev/null &
waiting=$!
eventually 30 ready
timeout 60 "$DTOOL" kill --quiet --delete bash_killed
expect_ended 1 "$waiting" 'dtool run --follow, killed from elsewhere'
expect_error '3 of 3 hosts failed'
expect_exit 0 dtool kill --all --yes --delete
expect_equal '' "$(pgrep -f '^sleep (554433|665544|776655)' || true)"
