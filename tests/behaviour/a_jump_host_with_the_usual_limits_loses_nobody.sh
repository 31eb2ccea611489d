#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# 64 hosts behind one jump host whose sshd has the limits that it comes with (MaxStartups 10:30:100, MaxSessions 10) all
# answer: one connection to it carries them all, and forwarded connections are no sessions.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 65 --behind
fault restart-sshd h1 -o MaxStartups=10:30:100 -o MaxSessions=10

logins() { grep -c 'Accepted publickey' "$DTOOL_LAB_FOLDER/host1/sshd.log" || true; }

before=$(logins)
expect_exit 0 dtool command --runs_on 'h[2-65]' --command 'echo here'
expect_equal 64 "$(grep -c here "$out")"
expect_equal 1 "$(($(logins) - before))"
