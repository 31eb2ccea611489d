#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What many hosts have in common is shown once: status has a row for each state and one for each odd machine, command --fold
# a block for each output, and failures stand under ranges of hosts.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 80

expect_exit 0 dtool command --runs_on "$DTOOL_LAB_RANGE" --fold --command 'echo same; [ "$(hostname)" != "$(hostname | sed s/-7$//)" ] && echo odd; true'
expect_output '^198\.18\.[0-9]+\.\[1-6,8-80\] \(79\)$'
expect_output '^198\.18\.[0-9]+\.7$'
expect_equal 2 "$(grep -c '^same$' "$out")"

expect_exit 0 dtool run --json --no_sync --code_path '~' --on_failure leave --runs_on "$DTOOL_LAB_RANGE" -- sh -c 'until [ -e ~/end ]; do sleep 1; done; exit 3'
on 5 touch /root/end
fault cut h9
seen_to_end() { dtool status >"$out" 2>"$err" || true; grep -q 'exited 3' "$out"; }
eventually 30 seen_to_end
expect_exit 1 dtool status --connect_timeout 5
expect_output 'running on 78 of 80 machines, .*1 exited 3'
expect_output '^4 .*exited 3'
expect_output '^8 .*unreachable'
expect_output '^0-3,5-7,9-79  .*\.\[1-4,6-8,10-80\] +running'
expect_equal 6 "$(wc -l <"$out")"
expect_exit 1 dtool status --connect_timeout 5 --each
expect_equal 83 "$(wc -l <"$out")"
expect_exit 2 dtool status --each --watch

fault mend h9
expect_exit 0 dtool kill --all --yes --delete --grace 1
connects_anew
for host in 20 21 22 23 40; do fault stop-sshd "h$host"; done
expect_exit 1 dtool command --runs_on "$DTOOL_LAB_RANGE" --command true
expect_error '^  198\.18\.[0-9]+\.\[20-23,40\]: '
expect_error '5 of 80 hosts failed'
