#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What dtool sends to a host arrives with its end, whatever its size, where the network takes it slowly: the last packets wait
# in a busy socket, and nothing that the host says makes dtool look again.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 1
on h1 mkdir -p /root/here
fault slow h1 delay 20ms
for size in 20000 25000 30000 35000 50000; do
  V=$(head -c "$size" /dev/zero | tr '\0' x)
  export V
  # shellcheck disable=SC2016
  expect_exit 0 timeout 30 "$DTOOL" run --runs_on h1 --no_sync --export V --follow -- bash -c 'echo "got ${#V}"'
  expect_output "got $size\$"
done
