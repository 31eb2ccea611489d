#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# While slurmctld is away nobody waits for ever, nothing is forgotten, and the job goes on; a start that is cut off leaves nothing that
# kill does not find.
source "$(dirname "$0")/harness.sh"
slurm_lab 3
mkdir code
cd code
echo word >file
slurm() { dtool run --launcher slurm "$@" -- sleep 1000; }
running() { [[ $(squeue --noheader --format %T) == RUNNING ]]; }

# The controller is gone: nobody waits for ever, nothing is forgotten, and the job goes on.
expect_exit 0 slurm --nodes 2
eventually 30 running
id=$(basename "$(ls "$HOME"/.dtool/killfiles/*)" .killfile)
fault stop-slurmctld
expect_exit 1 dtool status
expect_output 'its scheduler does not answer'
expect_exit 1 dtool kill --yes --delete
expect_error 'the scheduler may still have it'
expect_file "$HOME/.dtool/killfiles/$id.killfile"
run slurm
expect_equal 2 "$code"
expect_error 'Slurm does not take the job: .*contact slurm controller'
expect_error 'hint: scontrol ping'
fault restart-slurmctld
is_killed() { expect_exit 0 dtool kill "$id" --yes --delete; }
eventually 60 is_killed
expect_equal '' "$(squeue --noheader)"
expect_no_process_with "$id"

# A controller that is restarted in the middle of a run takes nothing away from it.
expect_exit 0 dtool run --launcher slurm -- bash -c 'sleep 8; echo well'
eventually 30 running
fault stop-slurmctld
fault restart-slurmctld
expect_exit 0 dtool logs -f
expect_output '^machine0: well$'
expect_exit 0 dtool kill --all --yes --delete

# A start that is cut off leaves nothing that kill does not find.
for pause in 0.05 0.1 0.15 0.2 0.3 0.4 0.6; do
  "$DTOOL" run --launcher slurm --runs_on "$login" --nodes 2 -- sleep 1000 >"$out" 2>&1 </dev/null &
  started=$!
  sleep "$pause"
  kill -KILL "$started" 2>/dev/null || true
  wait "$started" || true
  run dtool kill --all --yes --delete
  sleep 0.5
  expect_equal '' "$(squeue --noheader)"
done
