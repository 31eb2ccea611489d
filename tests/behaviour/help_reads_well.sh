#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Help is on standard output, the same however it is asked for, in lines that a terminal holds, and without a library's jargon.
source "$(dirname "$0")/harness.sh"

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

mapfile -t commands < <(sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p' "$work/help")
((${#commands[@]} >= 6)) || fail "commands in help: ${commands[*]}"
for command in "${commands[@]}"; do
  expect_exit 0 dtool "$command" --help
  cp "$out" "$work/help"
  expect_output "^usage: dtool $command \[OPTIONS\]"
  expect_no_output ':POSITIVE|[A-Z]:\{|UINT|FLOAT|Print this'
  expect_equal '' "$(awk 'length > 80' "$out")"
  expect_exit 0 dtool help "$command"
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

# What a command takes after its flags stands in its usage.
expect_exit 0 dtool run --help
expect_output '^usage: dtool run \[OPTIONS\] \[EXPERIMENT\] \[-- PROGRAM ARGS\.\.\.\]$'
expect_exit 0 dtool kill --help
expect_no_output 'PROGRAM'
