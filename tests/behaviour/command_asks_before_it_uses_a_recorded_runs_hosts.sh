#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Without --runs_on, `dtool command` takes the newest recorded run's hosts after a yes; without a terminal only with --yes.
source "$(dirname "$0")/harness.sh"
needs_program script
lab 2

# $1 is what is typed.
answer() {
  local typed=$1
  shift
  # The terminal echoes what is typed before the question; script ends at the end of its input.
  { sleep 0.5; printf '%s\n' "$typed"; sleep 2; } | timeout 60 script -qec "$(printf '%q ' "$@")" /dev/null
}

expect_exit 2 dtool command --command hostname
expect_error "^dtool: no run is recorded in $HOME/.dtool/killfiles$"
expect_error "^hint: --runs_on names hosts"

echo some code >train.py
expect_exit 0 dtool run --runs_on h1,h2 -- sleep 300
expect_exit 2 dtool command --command hostname
expect_error '^dtool: no hosts were named$'
expect_error 'hint: --runs_on names them; --yes takes those of .*'
expect_no_output .
expect_exit 0 dtool command --yes --command hostname
expect_output '^h1: lab-.*-1$'
expect_output '^h2: lab-.*-2$'

run answer y "$DTOOL" command --color never --quiet --command hostname
expect_output 'h1,h2|h\[1-2\]'
expect_output '\[y/N\]'
expect_output '(^|\[y/N] )h2: lab-.*-2' # the answer's line may go on with the first host's
for no in n '' nonsense; do
  run answer "$no" "$DTOOL" command --color never --quiet --command hostname
  expect_output 'nothing was run'
  expect_no_output 'lab-.*-[12]'
done

# Named hosts are not asked about, nor are those of the configuration.
expect_exit 0 dtool command --runs_on h2 --command hostname
expect_no_output '^h1'
echo 'runs_on = "h1"' >dtool.toml
expect_exit 0 dtool trust --settings --yes
expect_exit 0 dtool command --command hostname
expect_equal 1 "$(wc -l <"$out")"
rm dtool.toml

expect_exit 0 dtool kill --all --yes --delete
