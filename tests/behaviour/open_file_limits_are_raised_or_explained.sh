#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A low soft limit of open files is raised; under a low hard limit fewer hosts are at work at once; one too low for a
# connection a host is named with its mend, and nobody is asked anything.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program prlimit
lab 128

logins() { cat "$DTOOL_LAB_FOLDER"/host*/sshd.log | grep -c 'Accepted publickey' || true; }

for limits in 64:1024 400:400; do
  expect_exit 0 prlimit --nofile="$limits" "$DTOOL" command --runs_on "$DTOOL_LAB_RANGE" --command 'echo here'
  expect_equal 128 "$(grep -c here "$out")"
done

before=$(logins)
expect_exit 2 prlimit --nofile=128:128 "$DTOOL" command --runs_on "$DTOOL_LAB_RANGE" --command true
expect_error '128 hosts need 328 open files, and this machine allows 128'
expect_error '^hint: raise the hard limit'
expect_equal "$before" "$(logins)"
