# shellcheck shell=bash disable=SC2015,SC2034,SC2094,SC2154
# The job of a run, or a member of its array: runs on the job's first node, has srun start the processes, again after a
# failure where that is wanted, and records what became of each machine. Arguments: the run's folder, which all nodes must
# see. Follows words.sh. Defined before, too: run_id, nodes, all_tasks, tasks (a node; empty: as the allocation has them), max_restarts, on_failure, has_trainer (yes or no), parts and seeds
# (arrays, one for each member of the array), output (path).
# Numbers by the plan: nodes notice.
run=$1
export DTOOL_RUN_ID=$run_id
task=0
[ ${#parts[@]} = 1 ] || task=$SLURM_ARRAY_TASK_ID
refuse_unless_numbers "$task"
first=$((task * nodes))
state=$run/machine$first
say() { printf 'dtool: %s\n' "$1"; }
cd "$state" || { say "$(hostname) does not see $state: the home folder of the login node must be there on all nodes"; exit 1; }
rm -f over
mkdir -p "$output${parts[task]}"
exec >> "$output${parts[task]}/machine$first.log" 2>&1

# A job that was put back into the queue goes on counting.
attempt='' failures=''
read -r attempt 2> /dev/null < attempts
is_number "$attempt" || attempt=-1
read -r failures 2> /dev/null < failures
is_number "$failures" || failures=0
[ "$attempt" = -1 ] || say "Slurm started this job again"

# The first node as others reach it.
own_address() {
  local name address
  name=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
  address=$(scontrol show node -o "$name" 2> /dev/null | sed -n 's/.* NodeAddr=\([^ ]*\).*/\1/p')
  echo "${address:-$name}"
}

clear_records() {
  local i
  for ((i = first; i < first + nodes; i++)); do
    rm -rf "$run/machine$i"/{exit_code,stopped,cause,ranks}
    mkdir -p "$run/machine$i/ranks"
  done
}

# Each machine's exit code: that of its process that failed first. What was ended for others' sake was stopped.
record_ends() {
  local i file code told machine_code stopped
  for ((i = first; i < first + nodes; i++)); do
    machine_code='' stopped=yes
    while read -r file; do
      read -r code told < "$run/machine$i/ranks/$file" || continue
      [ -n "$told" ] || stopped=no
      [ -z "$told" ] || [ -z "$machine_code" ] || continue
      if [ -z "$machine_code" ] || [ "$machine_code" = 0 ]; then machine_code=$code; fi
    done < <(ls -tr "$run/machine$i/ranks" 2> /dev/null)
    [ -n "$machine_code" ] || machine_code=143  # it was ended before it could tell
    [ "$stopped" = no ] || [ "$machine_code" = 0 ] || : > "$run/machine$i/stopped"
    echo "$machine_code" > "$run/machine$i/exit_code.new" && mv -f "$run/machine$i/exit_code.new" "$run/machine$i/exit_code"
  done
}

step='' noticed='' told=''
# Slurm sends USR1 before the time limit: whoever writes checkpoints writes one, and the job goes on in its next turn.
trap 'noticed=yes' USR1
trap 'told=yes; [ -z "$step" ] || kill -TERM "$step" 2> /dev/null' TERM
# Whether Slurm ends this job, or puts it back into the queue: then what became of the machines is Slurm's to say.
is_taken_away() {
  local said
  sleep 1 &  # the step hears of it first
  wait $!
  [ -z "$told" ] || return 0
  said=$(timeout 20 scontrol show job -o "$SLURM_JOB_ID" 2> /dev/null)
  [[ $said == *JobState=* && $said != *JobState=RUNNING* ]]
}

go_on_later() {
  local i
  say "the time limit is near: a checkpoint is asked for, then this job goes back into the queue"
  : > notice
  scancel --signal=USR1 "$SLURM_JOB_ID"
  for ((i = 0; i < notice / 2; i++)); do
    kill -0 "$step" 2> /dev/null || break
    [ "$has_trainer" = no ] || [ -z "$(find "$output${parts[task]}" -newer notice -name 'step_*.pt' -print -quit 2> /dev/null)" ] || break
    sleep 1 &
    wait $!
  done
  kill -0 "$step" 2> /dev/null || return
  if scontrol requeue "$SLURM_JOB_ID"; then
    sleep 60 &  # Slurm ends this job
    wait $!
  fi
}

run_attempt() {
  ((attempt += 1))
  echo "$attempt" > attempts
  [ "$attempt" = 0 ] || echo "$attempt" > attempt
  clear_records
  taken=$(listening_ports)
  find_free_port
  srun --nodes="$nodes" --ntasks="$all_tasks" ${tasks:+--ntasks-per-node="$tasks"} --kill-on-bad-exit="$kill_on_bad_exit" \
    --job-name="$run_id" bash "$run/machine0/rank" "$run" "$attempt" "$address" "$free" 2> srun.err &
  step=$!
  while kill -0 "$step" 2> /dev/null; do
    wait "$step"
    code=$?
    [ -z "$noticed" ] || { noticed=''; go_on_later; }
  done
  wait "$step" 2> /dev/null
  after=$?
  [ "$after" = 127 ] || code=$after
  step=''
  # What srun says of processes' exit codes is recorded better; what it says of nodes and of itself is not known otherwise.
  grep -vE 'Exited with exit code|_step_signal: Terminating|task [0-9,-]+: Terminated|Force Terminated StepId|forcing job termination|Job step aborted|STEP .* CANCELLED|got SIGCONT' srun.err
}

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
kill_on_bad_exit=0
[ "$on_failure" = leave ] || kill_on_bad_exit=1
address=$(own_address)
while :; do
  run_attempt
  if [ "$code" != 0 ] && is_taken_away; then exit "$code"; fi
  [ "$code" != 0 ] && [ "$failures" -lt "$max_restarts" ] && [ ! -e "$run/machine0/killed" ] || break
  ((failures += 1))
  echo "$failures" > failures
  say "attempt $((attempt + 1)) ended with exit code $code; attempt $((attempt + 2)) begins"
done
record_ends
: > over
[ ! -e allocation ] || code=$(< exit_code)  # the session that this runs in is the first machine's, and records its end
exit "$code"
