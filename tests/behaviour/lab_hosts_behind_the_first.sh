#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# With --behind, only host 1 can be reached from here; the others through it.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 2 --behind

inner=$(sed -n 2p "$DTOOL_LAB_FOLDER/hosts")
expect_exit 0 ssh h1 true
expect_exit 255 ssh -o ConnectTimeout=1 "$inner" true
expect_exit 0 ssh -J h1 "$inner" hostname
expect_output '-2$'
expect_exit 0 ssh h2 hostname
