#!/bin/bash
# SPDX-License-Identifier: MIT
# On a terminal one line is drawn over and over below those of the finished epochs, and fits its width; a log and a
# terminal that cannot do so get plain lines without a control character. However the run ends, the terminal is usable.
. "$(dirname "$0")/harness.sh"
command -v tmux > /dev/null || { [ -z "${CI:-}" ] || fail 'tmux is not installed: tests/dependencies test'; echo 'SKIPPED: needs tmux'; exit 77; }
trap 'tmux -S "$work/tmux" kill-server 2> /dev/null; clean_up' EXIT

screen() { tmux -S "$work/tmux" capture-pane -p -t "$1" > screen.log; cat screen.log; }
shows() { screen "$1" | grep -qE -- "$2"; }
# terminal NAME COLUMNS ROWS: a shell with an empty prompt.
terminal() {
  tmux -S "$work/tmux" -f /dev/null new-session -d -s "$1" -x "$2" -y "$3" "cd '$work' && exec env PS1='\$ ' bash --norc"
  await 10 "a shell in the terminal" shows "$1" '^\$'
}
type_line() { tmux -S "$work/tmux" send-keys -t "$1" "$2" Enter; }
ends_with_the_bar() { screen "$1" | grep -v '^$' | tail -n 1 | grep -qE "$2"; }

digits_experiment short.toml train.epochs=3 data.train_samples=6400 data.test_samples=300 logging.every_steps=5
endless_experiment endless.toml logging.every_steps=5 train.evaluate_every=1000000

"$trainer" short.toml > short.log 2>&1 || fail "exit code $?"
grep -qE '^epoch 1/3  step 5  loss [0-9.]+  lr 0.001  samples/s [0-9]+  train accuracy [0-9.]+  [0-9]+ (s|min .*) left$' short.log || fail "no plain line"
[ "$(grep -c '^epoch ./3 done' short.log)" = 3 ] || fail "not three epochs"
! grep -q '[[:cntrl:]]' short.log || fail "a control character in a log"

terminal small 80 24
type_line small "$trainer short.toml; echo exit code \$?"
await 60 "the run's end" shows small '^exit code 0$'
[ "$(screen small | grep -cE '^epoch ./3 done ')" = 3 ] || fail "the finished epochs do not stay"
! shows small '\] +step' || fail "a bar was left behind"
screen small | grep -B 1 '^exit code' | grep -qE '^test accuracy 0\.' || fail "the last line is not the test accuracy"

fields='step [0-9]+ +loss [0-9.]+ +lr 0\.001 +samples/s [0-9k]+ +[0-9:]+ left$'
bar='^epoch [0-9]+/[0-9]+ \[=*>? *\] '
terminal wide 200 60
type_line wide "$trainer endless.toml"
await 60 "a bar with all fields" ends_with_the_bar wide "$bar +$fields"
awk 'length > 199 { exit 1 }' screen.log || fail "the bar is as wide as the terminal"
tmux -S "$work/tmux" resize-window -t wide -x 50 -y 20
await 20 "a bar that fits the smaller window" ends_with_the_bar wide "$bar +step [0-9]+ "
tmux -S "$work/tmux" resize-window -t wide -x 200 -y 60
await 20 "a bar that fits the larger window" ends_with_the_bar wide "$bar +$fields"
tmux -S "$work/tmux" send-keys -t wide C-c
await 20 "the message on a line of its own" shows wide '^dtool-trainer: machine 0 \(.*\): ended by signal 2 \(Interrupt\)$'
type_line wide 'stty -a | grep -c " echo "; echo usable'
await 10 "a usable terminal" shows wide '^usable$'

# A worker that is killed cannot clear its bar.
type_line small "clear; $trainer endless.toml"
await 60 "a bar" ends_with_the_bar small "$bar"
shell=$(tmux -S "$work/tmux" list-panes -t small -F '#{pane_pid}')
supervisor=$(children "$shell" | tr -d ' ')
kill -KILL "$(worker_of "$supervisor" 0)"
await 20 "the message on a line of its own" shows small '^dtool-trainer: rank 0 on machine 0 \(.*\) was killed'

type_line small "clear; TERM=dumb $trainer short.toml; echo exit code \$?"
await 60 "the run's end" shows small '^exit code 0$'
shows small '^epoch 3/3  step [0-9]+  loss' || fail "no plain lines on a dumb terminal"
