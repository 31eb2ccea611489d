#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A system call of a command fails, or the command is killed at it: a sample of the trials of tests/bench/call_trials, the same each time.
exec "$(dirname "$0")/../bench/call_trials" --sample 16 --seed 8 run kill copy fetch run_killed kill_killed copy_killed fetch_killed
