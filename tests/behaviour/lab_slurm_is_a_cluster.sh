#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The lab's Slurm is a cluster: jobs are submitted on a host that runs none, find their files in the shared home, have GPUs and time limits,
# and outlive their controller's restart and a node's reboot.
source "$(dirname "$0")/harness.sh"
slurm_lab 3

expect_exit 0 ssh h1 sinfo --noheader --Node --partition lab --format %N
expect_equal 'h2 h3' "$(xargs <"$out")"
expect_exit 0 ssh h1 'cd /root && mkdir here && cd here && timeout 60 srun -N 2 --gpus-per-node 2 sh -c "echo \$CUDA_VISIBLE_DEVICES \$PWD"'
expect_equal '0,1 /root/here 0,1 /root/here' "$(xargs <"$out")"
expect_exit 0 timeout 60 srun -N 1 --constraint odd hostname
expect_equal "$(on h3 hostname)" "$(<"$out")"
expect_exit 1 ssh h1 sbatch --partition closet --wrap true
expect_error 'Invalid partition'

# A job under way knows nothing of its controller's absence; then it is given a second more.
expect_exit 0 ssh h1 sbatch --parsable --nodes 2 --time 10 --signal=USR1@30 --output job.log --wrap \
  "'srun bash -c \"trap : USR1; trap \\\"echo told to end\\\" TERM; echo begun; until sleep 1000; do :; done\"'"
job=$(<"$out")
log=$DTOOL_LAB_FOLDER/host1/root/job.log
eventually 30 test -s "$log"
fault stop-slurmctld
expect_exit 1 timeout 60 squeue
fault restart-slurmctld
state() { scontrol show job "$job" | grep -o 'JobState=[A-Z]*'; }
expect_equal JobState=RUNNING "$(state)"
expect_exit 0 ssh h1 scontrol update "jobid=$job" EndTime=now+1
eventually 90 grep -q 'told to end' "$log"
is_timed_out() { [[ $(state) == JobState=TIMEOUT ]]; }
eventually 30 is_timed_out

expect_exit 0 ssh h1 sbatch --parsable --nodelist h3 --wrap "'sleep 1000'"
job=$(<"$out")
# While it is younger than BatchStartTimeout and a message's time, it might be on its way to the node, and its absence there means nothing.
is_old() { scontrol show job "$job" | grep -Eq 'RunTime=00:(00:(1[7-9]|[2-5][0-9])|0[1-9]:)'; }
eventually 60 is_old
fault reboot h3
# Slurm starts again what its node has lost.
is_again() { [[ $(scontrol show job "$job" | grep -o 'JobState=[A-Z]*\|Restarts=[0-9]*' | xargs) == 'JobState=RUNNING Restarts=1' ]]; }
eventually 90 is_again
expect_exit 0 timeout 60 srun --nodelist h3 hostname
expect_equal "$(on h3 hostname)" "$(<"$out")"
