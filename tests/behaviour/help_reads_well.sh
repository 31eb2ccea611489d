#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Help is on standard output, the same however it is asked for, in lines that a terminal holds, and without a library's jargon.
source "$(dirname "$0")/harness.sh"
needs_program tmux

expect_exit 0 dtool --help
cp "$out" "$work/help"
expect_output '^usage: dtool \[OPTIONS\] COMMAND$'
expect_output '^  command +run a command on all hosts at once$'
for words in '' help -h; do
  # shellcheck disable=SC2086
  expect_exit 0 dtool $words
  expect_equal "$(cat "$work/help")" "$(cat "$out")"
done
expect_exit 0 dtool version
expect_output '^dtool [0-9]+\.[0-9]+\.[0-9]+$'
expect_exit 0 dtool -V
expect_output '^dtool [0-9]+\.[0-9]+\.[0-9]+$'
expect_exit 0 dtool --version
expect_output '^dtool [0-9]+\.[0-9]+\.[0-9]+$'

mapfile -t commands < <(sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z_]*\) .*/\1/p' "$work/help")
((${#commands[@]} >= 6)) || fail "commands in help: ${commands[*]}"
for command in "${commands[@]}"; do
  expect_exit 0 dtool "$command" --help
  cp "$out" "$work/help"
  expect_output "^usage: dtool $command \[OPTIONS\]"
  expect_no_output ':POSITIVE|[A-Z]:\{|UINT|FLOAT|Print this'
  expect_equal '' "$(awk 'length > 80' "$out")"
  expect_exit 0 dtool help "$command"
  expect_equal "$(cat "$work/help")" "$(cat "$out")"
  # One screen, an example first.
  (($(wc -l <"$out") <= 23)) || fail "the help of $command takes $(wc -l <"$out") lines"
  expect_equal "  dtool $command" "$(sed -n 2p "$out" | cut -d ' ' -f 1-4)"
  expect_output "^\`dtool $command --help all\` lists all [0-9]+ flags\.$"
  flags=$(sed -n 's/.* lists all \([0-9]*\) flags.*/\1/p' "$out")
  expect_exit 0 dtool "$command" --help all
  cp "$out" "$work/help"
  expect_equal "$flags" "$(grep -cE '^  -' "$out")"
  expect_output '^  --color WHEN '
  expect_exit 0 dtool help "$command" all
  expect_equal "$(cat "$work/help")" "$(cat "$out")"
done

# Both spellings of a flag; values stay as they are.
expect_exit 0 dtool command --runs-on local --command 'echo --runs-on'
expect_output '^local: --runs-on$'
expect_exit 0 dtool command --runs-on=local '--command=echo --no-sync'
expect_output '^local: --no-sync$'
expect_exit 1 dtool command --runs_on local --command --no-such-x
expect_error 'failed: --no-such-x$'

# A short flag stands beside the long one that it means.
expect_exit 0 dtool command --help
expect_output '^  -w,-H,--runs_on,--hosts HOSTS$'

# On a terminal the pager shows what is longer than it, and dtool ends with it.
printf '#!/bin/sh\nhead -n 3\necho paged\n' >"$work/pager"
chmod 755 "$work/pager"
tmux -L "$test_name-$$" -f /dev/null new-session -d -x 80 -y 24 "env PAGER='$work/pager' '$DTOOL' run --help all; '$DTOOL' diff -h; echo over; sleep 60"
at_end 'tmux -L "$test_name-$$" kill-server'
shown() { tmux -L "$test_name-$$" capture-pane -p -J; }
ended() { shown | grep -q '^over$'; }
eventually 10 ended
expect_equal 'start a training run, or any program, across machines' "$(shown | head -n 1)"
expect_equal 'paged' "$(shown | sed -n 4p)"
expect_equal 'show where two runs differ: code, settings, hosts, last metrics:' "$(shown | sed -n 5p)"

# Where $PAGER names no program, less has its part.
mkdir "$work/bin"
cp "$work/pager" "$work/bin/less"
tmux -L "$test_name-$$" new-window "env PAGER='no_such_pager -R' PATH='$work/bin:$PATH' '$DTOOL' run --help all; echo over; sleep 60"
paged() { shown | sed -n 4p | grep -q '^paged$'; }
eventually 10 paged
expect_equal 'start a training run, or any program, across machines' "$(shown | head -n 1)"

# What a command takes after its flags stands in its usage.
expect_exit 0 dtool run --help
expect_output '^usage: dtool run \[OPTIONS\] \[EXPERIMENT\] \[-- PROGRAM ARGS\.\.\.\]$'
expect_exit 0 dtool kill --help
expect_no_output 'PROGRAM'
