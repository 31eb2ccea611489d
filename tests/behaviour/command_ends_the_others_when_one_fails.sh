#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# With --fail_fast the first host that fails ends the command on the others: each is told, the exit code is 1, and nothing runs
# on there, nor here.
source "$(dirname "$0")/harness.sh"
needs_program jq
lab 3

# The bracket keeps this command line from finding itself.
not_running() { ! on "$1" pgrep -f "$2" >"$work/pids"; }

# shellcheck disable=SC2016
one_fails='case $(hostname) in lab-*-1) until [ -e go ]; do sleep 0.1; done; exit 3 ;; esac; trap "" TERM HUP INT; echo begun; while :; do sleep 3041; done'
for program in libssh ssh; do
  on h1 rm -f go
  "$DTOOL" command --fail_fast --ssh_program $program --runs_on 'h[1-3],local' --command "$one_fails" >"$out" 2>"$err" &
  pid=$!
  for host in h2 h3 local; do eventually 20 grep -q "^$host: begun" "$out"; done
  on h1 touch go
  expect_ended 1 $pid 'dtool command --fail_fast'
  expect_error '^dtool: 1 of 4 hosts failed'
  expect_error '^  h1: exit code 3$'
  expect_error '^  h\[2-3\],local: ended because h1 failed$'
  for host in h2 h3; do eventually 5 not_running $host 'sleep 304[1]'; done
  eventually 5 bash -c '! pgrep -fP 1 "sleep 304[1]"'
done

# A host that is not reached is a failure as well; those whose turn has not come do nothing.
expect_exit 1 dtool command --fail_fast --json --width 1 --runs_on none.invalid,h2 --command 'touch began'
expect_equal 'unreachable ended' "$(jq -r '.hosts[].failure' "$out" | xargs)"
expect_exit 1 on h2 test -e began

# Who has ended well, has.
expect_exit 1 dtool command --fail_fast --json --width 1 --runs_on h2,none.invalid --command 'echo well'
expect_equal 'none unreachable' "$(jq -r '.hosts[].failure' "$out" | xargs)"
expect_exit 0 dtool command --fail_fast --runs_on 'h[1-3]' --command true
