#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool command` answers for the hosts that it reaches, names the one that it does not, and exits with 1.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3

fault cut h2
expect_exit 1 dtool command --runs_on "$DTOOL_LAB_HOSTS" --command 'echo hello'
expect_equal 2 "$(grep -c hello "$out")"
expect_error "$(sed -n 2p "$DTOOL_LAB_FOLDER/hosts")"
expect_error '^    hint: is the host up'
