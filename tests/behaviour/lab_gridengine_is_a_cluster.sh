#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The lab's Grid Engine is a cluster: jobs are submitted on a host that runs none, have slots on several hosts, start tasks there, find their
# files in the shared home, and outlive their master's restart and a node's reboot.
source "$(dirname "$0")/harness.sh"
gridengine_lab 3

# shellcheck disable=SC2016
printf '%s\n' '#!/bin/bash' 'echo "on $(hostname)"' 'while read -r host _; do qrsh -inherit -nostdin "$host" hostname; done <"$PE_HOSTFILE"' \
  'until [ -e over ]; do sleep 0.2; done' 'echo over' >"$DTOOL_LAB_FOLDER/host1/root/job.sh"
expect_exit 0 ssh h1 qsub -terse -S /bin/bash -cwd -j y -o job.log -pe one 2 job.sh
job=$(<"$out")
log=$DTOOL_LAB_FOLDER/host1/root/job.log
eventually 30 grep -q "$(on h2 hostname)" "$log"
has_all() { [[ $(sort -u "$log" | grep -c "^$(on h2 hostname)\|^$(on h3 hostname)") == 2 ]]; }
eventually 30 has_all
expect_exit 1 ssh h1 qsub -w v -q nosuch -b y true
expect_error 'unknown queue'

# A job under way knows nothing of its master's absence.
fault stop-qmaster
expect_exit 1 ssh h1 qstat
fault restart-qmaster
expect_exit 0 ssh h1 qstat
expect_output "^ *$job .* r "
touch "$DTOOL_LAB_FOLDER/host1/root/over"
is_over() { [[ -z $(on h1 qstat) ]]; }
eventually 20 is_over
expect_equal over "$(tail -n 1 "$log")"
knows_its_end() { on h1 qacct -j "$job" | grep -q '^exit_status  *0'; }
eventually 20 knows_its_end

fault reboot h3
runs_there() { [[ $(on h1 timeout 20 qrsh -nostdin -now n -l hostname=h3 hostname) == "$(on h3 hostname)" ]]; }
eventually 60 runs_there
