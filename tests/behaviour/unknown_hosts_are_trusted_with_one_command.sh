#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Hosts whose keys are unknown are one failure, told once, and the hint is a command that mends it for all of them.
source "$(dirname "$0")/harness.sh"
lab 3
for host in h1 h2 h3; do fault forget "$host"; done

expect_exit 1 dtool command --runs_on 'h[1-3]' --command true
expect_error '^  h\[1-3\]: the host key is not in '
hint=$(sed -n 's/.*accept it with: dtool //p' "$err")
expect_equal "trust --runs_on 'h[1-3]'" "$hint"

eval "expect_exit 1 dtool $hint"
expect_error 'there is no terminal to ask on'
eval "expect_exit 0 dtool $hint --yes"
expect_exit 0 dtool command --runs_on 'h[1-3]' --command true

# Also where the key is known by the host's address alone, as trust has written it.
fault forget h2
expect_exit 1 dtool command --runs_on 'h[1-3]' --command true
expect_error '^  h2: the host key is not in '
