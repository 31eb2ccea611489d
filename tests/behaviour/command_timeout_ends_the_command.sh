#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# With --timeout a command that does not end is ended on its host; a background process that keeps the output open holds nobody up.
source "$(dirname "$0")/harness.sh"
needs_program jq
lab 2

# The bracket keeps this command line from finding itself.
running() { on "$1" pgrep -f "$2" >"$work/pids"; }
not_running() { ! running "$@"; }

for host in h1 local; do
  expect_exit 1 dtool command --timeout 3 --runs_on $host --command 'echo begun; sleep 3071; echo never'
  expect_output "^$host: begun$"
  expect_no_output never
  expect_error "^  $host: the command did not end in time"
  expect_error 'hint: --timeout sets how long a command may take'
done
eventually 10 not_running h1 'sleep 307[1]'
expect_exit 1 pgrep -f 'sleep 307[1]'

# Not even by asking kindly.
expect_exit 1 dtool command --timeout 3 --runs_on h1,h2 --command \
  'case $(hostname) in *-1) trap "" TERM HUP INT; echo deaf; while :; do sleep 3072; done ;; *) echo well ;; esac'
expect_output '^h1: deaf$'
expect_output '^h2: well$'
expect_error '1 of 2 hosts failed'
eventually 10 not_running h1 'sleep 307[2]'
expect_exit 1 dtool command --json --timeout 0.5 --runs_on h1 --command 'sleep 3073'
expect_equal timed_out "$(jq -r '.hosts[0].failure' "$out")"

# Time to connect does not count.
expect_exit 0 dtool command --timeout 5 --runs_on h1,h2 --command true

began=$SECONDS
for host in h1 local; do
  expect_exit 1 dtool command --json --runs_on $host --command 'sleep 60 & echo words; exit 3'
  expect_equal 3 "$(jq '.hosts[0].exit_code' "$out")"
  expect_equal words "$(jq -r '.hosts[0].stdout' "$out")"
done
((SECONDS - began < 40)) || fail "a background process held dtool up for $((SECONDS - began)) s"
