#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool status --watch` redraws in place on a terminal of any size, folds like rows where there is little room, gives the terminal
# back on `q`, Ctrl-C and the end of the run, and prints plain blocks where there is none.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program tmux
needs_program python3
lab 3

# Each terminal has a server of its own: one that has been ended may still take a session on and lose it.
servers=0
mux() { tmux -f /dev/null -L "dtool-watch-$$-$servers" "$@"; }
at_end 'mux kill-server 2>/dev/null'
screen_now() { mux capture-pane -p >"$out"; }
shows() { screen_now && grep -Eq -e "$1" "$out"; }

# watch_in COLUMNS ROWS: in a terminal of that size, then its exit code and whether keys are shown again.
watch_in() {
  mux kill-server 2>/dev/null || true
  ((++servers))
  mux new-session -d -x "$1" -y "$2" "bash --norc"
  mux send-keys "PS1='ready> '; clear; '$DTOOL' status --watch --interval 0.5; echo \"code \$?\"; stty -a | grep -ow -- '-*echo'" Enter
}

expect_exit 2 dtool status --interval 3
expect_error 'give --watch'
expect_exit 2 dtool status --watch --json
printf '%s\n' 'echo this is the last line of a log' 'exec sleep 300' >job.sh
expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" -- bash job.sh
run_id=$(json 'd["run_id"]')

watch_in 80 24
all_rows() { shows '^2 .*running' && [[ $(grep -c '^[0-2] .*running .*this is' "$out") == 3 ]]; }
eventually 60 all_rows
expect_output '^MACHINE +HOST'
expect_output 'q: leave'
expect_equal 24 "$(wc -l <"$out")"
expect_equal 1 "$(mux display-message -p '#{alternate_on}')"
expect_equal 0 "$(mux display-message -p '#{cursor_flag}')"
mux resize-window -x 200 -y 60
eventually 30 shows 'PID'
mux resize-window -x 60 -y 7
eventually 30 shows '^0-2 .*running'
mux send-keys q
eventually 30 shows '^code 0'
eventually 10 shows '^echo'
expect_equal 0 "$(mux display-message -p '#{alternate_on}')"
expect_equal 1 "$(mux display-message -p '#{cursor_flag}')"

watch_in 200 60
eventually 60 shows '^2 .*running'
mux send-keys C-c
eventually 30 shows '^code 130'
eventually 10 shows '^echo'

# A host that is cut off does not keep the others' rows, nor the keyboard, waiting.
watch_in 80 24
eventually 60 shows '^2 .*running'
fault cut h3
eventually 90 shows '^2 .*unreachable'
mux send-keys q
eventually 30 shows '^code 1'
fault mend h3

# Without a terminal: blocks, and the end with the run.
timeout 100 "$DTOOL" status --watch --interval 0.3 >"$out" 2>"$err" </dev/null &
waiting=$!
two_blocks() { (($(grep -c 'running on 3 of 3' "$out") >= 2)); }
eventually 60 two_blocks
# All at once, before one machine's end ends the others.
ends=()
for host in h1 h2 h3; do
  on "$host" pkill -x sleep &
  ends+=($!)
done
wait "${ends[@]}"
expect_ended 1 "$waiting" 'dtool status --watch'
expect_output "^$run_id: exited 143 on 3 machines"
expect_no_output $'\e'
