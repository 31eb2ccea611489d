#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A system call of a command fails, on the launcher or on a host, or the process is killed at it: a sample of the trials of
# tests/bench/call_trials, and a few points of tests/bench/named_points, the same each time.
set -e
bench=$(dirname "$0")/../bench
"$bench/call_trials" --sample 16 --seed 8 run kill run_host kill_host run_killed kill_killed copy_host_killed fetch_killed
exec "$bench/named_points" launcher_before_killfile launcher_after_killfile kill_before_mark copy_after_last_parcel
