# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
# What a run's scripts ask of Slurm, as cli/engines/scheduler.h lists it. Follows words.sh.
# Numbers by the plan: nodes members.
scheduler=Slurm package=slurm-client programs='sbatch srun squeue scontrol scancel'
# What srun says of processes' exit codes is recorded better; what it says of nodes and of itself is not known otherwise.
noise='Exited with exit code|_step_signal: Terminating|task [0-9,-]+: Terminated|Force Terminated StepId|forcing job termination|Job step aborted|STEP .* CANCELLED|got SIGCONT'

# ---- in the job
job_task() { task=$SLURM_ARRAY_TASK_ID; }
prepare_job() {
  # srun does not pass on what sbatch was told of these by itself.
  [ -z "${SLURM_CPUS_PER_TASK-}" ] || export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
  # Where sbatch was told --export=NONE, srun would hand on nothing either, not even where bash is. What the job has, its processes have.
  export SLURM_EXPORT_ENV=ALL PATH
  # A step of the user's, such as srun --pty bash, that dtool runs in holds the nodes while it waits for the run: its processors
  # are shared. What that step was bound to is not for this one.
  if [ -e allocation ] && [ -n "${SLURM_STEP_ID-}" ]; then
    export SLURM_OVERLAP=1
    unset SLURM_CPU_BIND SLURM_CPU_BIND_LIST SLURM_CPU_BIND_TYPE SLURM_CPU_BIND_VERBOSE
  fi
}
own_address() {
  local name address
  name=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
  address=$(scontrol show node -o "$name" 2> /dev/null | sed -n 's/.* NodeAddr=\([^ ]*\).*/\1/p')
  echo "${address:-$name}"
}
start_processes() {
  local kill_on_bad_exit=0
  [ "$on_failure" = leave ] || kill_on_bad_exit=1
  exec srun --nodes="$nodes" --ntasks="$all_tasks" ${tasks:+--ntasks-per-node="$tasks"} --kill-on-bad-exit="$kill_on_bad_exit" \
    --job-name="$run_id" "$@" variables \
    SLURM_STEP_NUM_NODES SLURM_NODEID SLURM_PROCID SLURM_LOCALID SLURM_STEP_NUM_TASKS SLURM_STEP_TASKS_PER_NODE SLURMD_NODENAME
}
is_taken() {
  local said
  said=$(timeout 20 scontrol show job -o "$SLURM_JOB_ID" 2> /dev/null)
  [[ $said == *JobState=* && $said != *JobState=RUNNING* ]]
}
leave_taken() { exit "$1"; }
ask_for_checkpoint() { scancel --signal=USR1 "$SLURM_JOB_ID"; }
put_back() {
  scontrol requeue "$SLURM_JOB_ID" || return
  sleep 60 &  # Slurm ends this job
  wait $!
}

# ---- on the login host
try_job() { timeout 40 sbatch --test-only; }
# A job may wait for nodes that are down just now, which that question does not allow for; sbatch itself will say.
may_wait() {
  [[ $1 == *'node configuration is not available'* ]] &&
    [ -n "$(timeout 20 sinfo --noheader --states down,drain,fail,unknown,no_respond --format %D 2> /dev/null)" ]
}
hint_of() {
  case $1 in
    *'contact slurm controller'* | *'Unable to contact'* | '') echo 'scontrol ping tells whether slurmctld is up; ask who runs the cluster' ;;
    *'configuration source'*) echo 'Slurm is installed here and knows no cluster: --runs_on names a login host of one' ;;
    *ccount* | *QOS* | *qos*) echo 'sacctmgr show associations user=YOU lists accounts and qualities of service' ;;
    *) echo 'sinfo shows the partitions and their nodes' ;;
  esac
}
submit_job() {
  local options=(--parsable --chdir="$PWD" --open-mode=append)
  if [ "$members" = 1 ]; then
    options+=(--output="${log//%/%%}")
  else
    options+=(--array="0-$((members - 1))" --output="${state%/*}/job_%a.log")
  fi
  sbatch "${options[@]}" "$@"
}
ask_job() {
  local said code
  said=$(timeout 8 scontrol show job -o "$1" 2>&1)
  code=$?
  [ "$code" != 124 ] || said='slurmctld does not answer'
  [[ $said != *'Invalid job id'* ]] || return 0
  if [ "$code" != 0 ]; then printf '%s\n' "$said"; return 1; fi
  awk '
    BEGIN {
      n = split("PENDING REQUEUED REQUEUE_HOLD REQUEUE_FED SPECIAL_EXIT CONFIGURING", a); for (i = 1; i <= n; i++) words[a[i]] = "pending"
      n = split("FAILED BOOT_FAIL REVOKED", a); for (i = 1; i <= n; i++) words[a[i]] = "failed"
      words["COMPLETED"] = "completed"; words["CANCELLED"] = "cancelled"; words["TIMEOUT"] = words["DEADLINE"] = "timed_out"
      words["NODE_FAIL"] = "node_failed"; words["OUT_OF_MEMORY"] = "out_of_memory"; words["PREEMPTED"] = "preempted"
    }
    {
      split("", is)
      for (i = 1; i <= NF; i++) {
        key = substr($i, 1, index($i, "=") - 1)
        if (!(key in is)) is[key] = substr($i, length(key) + 2)
      }
      task = is["ArrayTaskId"]; state = is["JobState"]
      if (task == "" || task ~ /[-,%]/) task = "*"
      if (state == "") next
      print task, (state in words ? words[state] : "running"), is["StartTime"], is["EndTime"], is["Reason"]
    }' <<< "$said"
}
jobs_of_run() {  # those of its name too, which stand for a start that was cut off
  local ids
  ids=$(timeout 20 squeue --noheader --me --name "$run_id" --format %A 2>&1) || { echo "$ids" >&2; return 1; }
  printf '%s\n' "$ids" | grep -E '^[0-9]+$' | sort -u
  return 0
}
cancel_jobs() { timeout 15 scancel "$@"; }
describe_jobs() { timeout 20 squeue --noheader --me --name "$run_id" --format '%T on %N' 2>&1 | head -n 1; }
how_to_cancel="scancel --name"
end_rest() { :; }  # a job that Slurm does not have any more has no process: its nodes have said so
