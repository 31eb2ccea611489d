#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What a host said before it died is shown, the host is named, and the others' output is whole.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program jq
lab 4

talk='for i in $(seq 20); do echo line $i; sleep 0.1; done'

# Its sshd session is killed.
expect_exit 1 dtool command --runs_on h1,h2 --command \
  "case \$(hostname) in *-2) echo last words; sleep 0.5; kill -KILL \$PPID; sleep 20 ;; *) $talk ;; esac"
expect_output '^h2: last words$'
expect_equal 20 "$(grep -c '^h1: line' "$out")"
expect_error '1 of 2 hosts failed'
expect_error '^  h2: .*(connection was lost|closed the command)'

# The command is killed: that is an answer.
expect_exit 1 dtool command --json --runs_on h1,h2,h3 --command \
  'case $(hostname) in *-1) kill -KILL $$ ;; *-2) kill -TERM $$ ;; *-3) exit 77 ;; esac'
expect_equal '137 143 77' "$(jq '.hosts[].exit_code' "$out" | xargs)"
expect_equal 'none none none' "$(jq -r '.hosts[].failure' "$out" | xargs)"
expect_exit 1 dtool command --runs_on h1,h2 --command 'case $(hostname) in *-2) kill -KILL $$ ;; esac'
expect_error '^  h2: exit code 137 \(signal 9\)$'

# Its cable is cut, which no packet tells: half a minute of silence does.
"$DTOOL" command --runs_on h3,h4 --command "case \$(hostname) in *-4) echo before the cut; sleep 100 ;; *) $talk ;; esac" >"$out" 2>"$err" &
pid=$!
eventually 10 grep -q 'before the cut' "$out"
fault cut h4
expect_ended 1 "$pid"
expect_equal 20 "$(grep -c '^h3: line' "$out")"
expect_error '1 of 2 hosts failed'
expect_error '^  h4: .*connection was lost'
