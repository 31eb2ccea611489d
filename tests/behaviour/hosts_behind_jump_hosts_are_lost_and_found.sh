#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Behind a jump host: a host that is cut off is noticed though the connection to the jump host lives, one that is only silent is
# not; and when the jump host drops its connections, logs are followed on over new ones.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3 --behind
touch code

# shellcheck disable=SC2016
expect_exit 0 dtool run --quiet --runs_on h2,h3 -- bash -c 'for ((i = 0; i < 100; i++)); do echo "line $i"; sleep 0.1; done'
: >"$out"
timeout 120 "$DTOOL" logs -f >"$out" 2>"$err" </dev/null &
waiting=$!
last_command='dtool logs -f' last_code=
eventually 30 expect_output 'machine0: line 5'
eventually 30 expect_output 'machine1: line 5'
sudo_on h1 pkill -KILL -f '^sshd: (root|ann)'
expect_ended 0 "$waiting"
for id in 0 1; do expect_equal "$(seq -f 'line %g' 0 99)" "$(sed -n "s/^machine$id: //p" "$out")"; done
for id in 0 1; do expect_error "machine$id: connected again"; done

: >"$out"
timeout 120 "$DTOOL" command --runs_on h2,h3 --command 'echo here; sleep 45; hostname' >"$out" 2>"$err" </dev/null &
waiting=$!
last_command='dtool command' last_code=
eventually 30 expect_output 'h2: here'
eventually 30 expect_output 'h3: here'
fault cut h3
expect_ended 1 "$waiting"
expect_output '^h2: lab-.*-2$'
expect_error '1 of 2 hosts failed'
expect_error 'h3: the connection was lost: no sign of life for 30 s'
fault mend h3
