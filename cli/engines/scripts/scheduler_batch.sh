# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2015,SC2034,SC2094,SC2154
# The job of a run, or a member of its array: runs on the job's first node, has the scheduler start the processes, again after a
# failure where that is wanted, and records what became of each machine. Arguments: the run's folder, which all nodes must
# see. Follows words.sh. Defined before, too: run_id, nodes, all_tasks, tasks (a node; empty: as the allocation has them), max_restarts,
# on_failure, has_trainer, torchrun (yes or no), parts and seeds (arrays, one for each member of the array), output (path),
# log_mark, failure_prefix (of a line that says why the run failed), and the scheduler's functions.
# Numbers by the plan: nodes notice.
run=$1
export DTOOL_RUN_ID=$run_id
task=0
[ ${#parts[@]} = 1 ] || job_task
refuse_unless_numbers "$task"
first=$((task * nodes))
state=$run/machine$first
say() { printf 'dtool: %s\n' "$1"; }
cd "$state" || { say "$(hostname) does not see $state: the home folder of the login node must be there on all nodes"; exit 1; }
rm -f over
mkdir -p "$output${parts[task]}"
exec >> "$output${parts[task]}/machine$first$log_mark.log" 2>&1

# A job that was put back into the queue goes on counting.
attempt='' failures='' cause=''
read -r attempt 2> /dev/null < attempts
is_number "$attempt" || attempt=-1
read -r failures 2> /dev/null < failures
is_number "$failures" || failures=0
[ "$attempt" = -1 ] || say "$scheduler started this job again"

clear_records() {
  local i
  for ((i = first; i < first + nodes; i++)); do
    rm -rf "$run/machine$i"/{exit_code,stopped,cause,cause_place,first_failure,ranks}
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
    [ -z "$cause" ] || { echo "$cause" > "$run/machine$i/cause"; echo "$failure_prefix$cause" >> "$run/machine$i/log"; }
    [ "$stopped" = no ] || [ "$machine_code" = 0 ] || : > "$run/machine$i/stopped"
    echo "$machine_code" > "$run/machine$i/exit_code.new" && mv -f "$run/machine$i/exit_code.new" "$run/machine$i/exit_code"
  done
}

step='' noticed='' told=''
# USR1 comes before the time limit: whoever writes checkpoints writes one, and the job goes on in its next turn.
trap 'noticed=yes' USR1
trap 'told=yes; [ -z "$step" ] || kill -TERM "$step" 2> /dev/null' TERM
# Whether the scheduler ends this job, or puts it back into the queue: then what became of the machines is the scheduler's to say.
is_taken_away() {
  sleep 1 &  # the processes hear of it first
  wait $!
  [ -n "$told" ] || is_taken
}

go_on_later() {
  local i
  say "the time limit is near: a checkpoint is asked for, then this job goes back into the queue"
  : > notice
  ask_for_checkpoint
  for ((i = 0; i < notice / 2; i++)); do
    kill -0 "$step" 2> /dev/null || break
    [ "$has_trainer" = no ] || [ -z "$(find "$output${parts[task]}" -newer notice -name 'step_*.safetensors' -print -quit 2> /dev/null)" ] || break
    sleep 1 &
    wait $!
  done
  kill -0 "$step" 2> /dev/null || return
  put_back
}

run_attempt() {
  cause=''
  ((attempt += 1))
  echo "$attempt" > attempts
  [ "$attempt" = 0 ] || echo "$attempt" > attempt
  clear_records
  free=$("$run/dtool-host" port) || { say "$(hostname): $run/dtool-host found no port"; code=126; return; }
  # The scheduler's function adds the numbers of each process, or the names of the variables that hold them (ssh/host/session/rank.h).
  start_processes "$run/dtool-host" rank job "$run" "$attempt" "$address" "$free" "$task" "$first" "$torchrun" 2> started.err &
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
  [ "$code" = 0 ] || tell_cause
  grep -vE "$noise" started.err
}

# Exit code 3: a mistake, which another attempt would only repeat.
tell_cause() {
  cause=$("$run/dtool-host" cause "$run" "$attempt" "$first" "$nodes")
  [ "$?" != 3 ] || failures=$max_restarts
}

# As ssh/host/explaining_line.h says, before another attempt.
note_failure() {
  local i state
  for ((i = first; i < first + nodes; i++)); do
    state=$run/machine$i
    printf '%s %s %s\n%s\n' "$attempt" "$(wc -c 2> /dev/null < "$state/log")" "$(cat "$state/cause_place" 2> /dev/null)" \
      "${cause:-exit code $code}" > "$state/earlier_failure"
  done
}

prepare_job
address=$(own_address)
while :; do
  run_attempt
  if [ "$code" != 0 ] && is_taken_away; then leave_taken "$code"; fi
  [ "$code" != 0 ] && [ "$failures" -lt "$max_restarts" ] && [ ! -e "$run/machine0/killed" ] || break
  ((failures += 1))
  echo "$failures" > failures
  note_failure
  say "attempt $((attempt + 1)) ended with exit code $code${cause:+ ($cause)}; attempt $((attempt + 2)) begins"
done
record_ends
: > over
[ ! -e allocation ] || code=$(< exit_code)  # the session that this runs in is the first machine's, and records its end
is_number "$code" || code=1
exit "$code"
