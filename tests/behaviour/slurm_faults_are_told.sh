#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What can go wrong between dtool and Slurm has a message that names it; what Slurm does to a job by itself is in status.
source "$(dirname "$0")/harness.sh"
slurm_lab 3
mkdir code
cd code
echo word >file
slurm() { dtool run --launcher slurm "$@" -- sleep 1000; }

# Refused before anything is sent or started.
refused() {  # pattern, flags...
  expect_exit 2 slurm "${@:2}"
  expect_error "$1"
  expect_equal '' "$(squeue --noheader)"
  expect_exit 0 dtool list
  expect_no_output .
}
refused 'Slurm does not take the job: .*[Ii]nvalid partition' --partition nosuch
refused 'Slurm does not take the job: .*node configuration is not available' --nodes 50
refused "unrecognized option '--nosuch=5'" --sbatch_arg=--nosuch=5
refused "'soon' is no time as Slurm has it" --time soon
refused 'one login host, and --runs_on names 2' --runs_on "$login,local"
refused 'hostfile names machines' --hostfile file
refused 'Slurm chooses those itself' --distributed_ip_and_port 10.0.0.1:23
refused 'no list of seeds' --seeds 5-1
refused 'each say which seeds' --seeds 1-2 --seed 3
refused 'mean the same' --ntasks_per_node 2 --nproc_per_node 2
refused "--nodes is dtool's own" --sbatch_arg=--nodes=5
refused 'line end' --partition $'a\nb'
expect_exit 2 dtool run --nodes 2 -- true
expect_error '--nodes goes with --launcher slurm or gridengine, and this run uses ssh'
fault hide h1 sbatch
refused 'sbatch is not there' --runs_on "$login"
fault unhide h1 sbatch

# Folders that the login host has alone.
on h1 mount -t tmpfs none /srv
expect_exit 1 slurm --runs_on "$login" --code_path /srv/code --follow
expect_error 'Slurm could not begin it: do its nodes see'
expect_exit 1 dtool status
expect_output 'cause: Slurm could not begin job [0-9]+ \(JobLaunchFailure\): do its nodes see'
expect_exit 1 slurm --runs_on "$login" --in_place --code_path /srv/code --output_dir /root/outputs --follow
expect_output 'h[23] does not see the code folder /srv/code: --code_path names one that all nodes see'
expect_exit 0 dtool kill --all --yes --delete

# Cancelled behind dtool's back.
expect_exit 0 slurm --nodes 2
running() { [[ $(squeue --noheader --format %T) == RUNNING ]]; }
eventually 30 running
scancel "$(squeue --noheader --format %A)"
cancelled() { expect_exit 1 dtool status && expect_output 'cause: job [0-9]+ was cancelled'; }
eventually 20 cancelled
expect_exit 1 dtool logs -f
expect_error 'the scheduler ended it: cancelled'
expect_exit 0 dtool kill --all --yes --delete

# A node goes down in the middle: the job waits for its next turn, or, where it may not, has failed.
expect_exit 0 slurm --nodes 2
eventually 30 running
scontrol update nodename=h3 state=down reason=test
waits() { expect_exit 0 dtool status && expect_output 'pending \('; }
eventually 30 waits
expect_exit 0 dtool kill --all --yes --delete
node_is_back() { [[ $(sinfo --noheader --partition lab --states idle --format %D) == 2 ]]; }
node_is_back || scontrol update nodename=h3 state=resume
eventually 30 node_is_back
expect_exit 0 slurm --nodes 2 --sbatch_arg=--no-requeue
eventually 30 running
scontrol update nodename=h3 state=down reason=test
node_failed() { expect_exit 1 dtool status && expect_output 'cause: a node of job [0-9]+ failed' && expect_output 'node failed'; }
eventually 30 node_failed
expect_exit 0 dtool kill --all --yes --delete
node_is_back || scontrol update nodename=h3 state=resume
eventually 30 node_is_back

# The time limit of a program that nobody asked to go on; Slurm looks every 30 s.
expect_exit 0 slurm --time 1
eventually 30 running
scontrol update jobid="$(squeue --noheader --format %A)" EndTime=now+1
timed_out() { expect_exit 1 dtool status && expect_output 'cause: job [0-9]+ reached its time limit' && expect_output 'timed out'; }
eventually 60 timed_out
expect_exit 0 dtool list --state
expect_output '  timed out  '
expect_exit 0 dtool kill --all --yes --delete
