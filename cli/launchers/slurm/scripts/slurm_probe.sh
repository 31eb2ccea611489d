# shellcheck shell=bash disable=SC2154
# How a machine of a run that Slurm runs is doing: follow.sh and status.sh source it in the machine's state folder. Defined before: nodes
# (of the job).
# Numbers by the plan and date: nodes seconds.
run_folder=$(readlink -f ..)
machine=${PWD##*machine}
[[ $machine =~ ^[0-9]{1,9}$ ]] || machine=0
task=$((machine / nodes))
first=$run_folder/machine$((task * nodes))
job=$(cat "$run_folder/machine0/job" 2> /dev/null)
told=$run_folder/slurm.told  # what Slurm last said, for all machines of the run

# Asks Slurm where its last answer is older than $1 seconds. Once a job is over, Slurm forgets it after some minutes, and the answer stays.
ask_slurm() {
  local said now file
  now=$(date +%s)
  for file in "$told" "$told.fault"; do
    [ $((now - $(stat -c %Y "$file" 2> /dev/null || echo 0))) -ge "$1" ] || return 0
  done
  (
    flock -n 9 || { [ -e "$told" ] || flock 9; exit; }
    said=$(timeout 8 scontrol show job -o "$job" 2>&1)
    code=$?
    if [ "$code" = 0 ]; then
      printf '%s\n' "$said" > "$told.new" && mv -f "$told.new" "$told"
      rm -f "$told.fault"
    elif [[ $said == *'Invalid job id'* ]]; then
      : > "$run_folder/slurm.gone"
      touch "$told"
      rm -f "$told.fault"
    else
      [ "$code" != 124 ] || said='slurmctld does not answer'
      printf '%s\n' "${said//$'\n'/ }" > "$told.fault"
    fi
  ) 9>> "$run_folder/slurm.lock"
}
# What Slurm says of $1 (JobState, Reason, …), of this machine's job.
slurm_says() {
  awk -v task="$task" -v key="$1" '
    { mine = "" ; value = "" }
    { for (i = 1; i <= NF; i++) {
        if ($i ~ /^ArrayTaskId=/) { mine = substr($i, 13) }
        if (index($i, key "=") == 1 && value == "") value = substr($i, length(key) + 2) } }
    mine == "" || mine == task { exact = value; found = 1 }
    mine ~ /[-,%]/ { others = value }
    END { print found ? exact : others }' "$told" 2> /dev/null
}
# Sets slurm_state: pending, running, completed, failed, cancelled, timed_out, node_failed, out_of_memory, preempted, lost (Slurm knows
# nothing of it), unknown (Slurm does not answer).
look_at_job() {
  local word
  slurm_state=lost
  [ -n "$job" ] || return
  ask_slurm "$1"
  word=$(slurm_says JobState)
  case $word in
    PENDING | REQUEUED | REQUEUE_HOLD | REQUEUE_FED | SPECIAL_EXIT | CONFIGURING) slurm_state=pending ;;
    RUNNING | COMPLETING | SUSPENDED | STOPPED | RESIZING | SIGNALING | STAGE_OUT) slurm_state=running ;;
    COMPLETED) slurm_state=completed ;;
    FAILED | BOOT_FAIL | REVOKED) slurm_state=failed ;;
    CANCELLED*) slurm_state=cancelled ;;
    TIMEOUT | DEADLINE) slurm_state=timed_out ;;
    NODE_FAIL) slurm_state=node_failed ;;
    OUT_OF_MEMORY) slurm_state=out_of_memory ;;
    PREEMPTED) slurm_state=preempted ;;
    '') slurm_state=unknown ;;
    *) slurm_state=running ;;  # of a newer Slurm
  esac
  case $slurm_state in
    pending | running | unknown)
      if [ -e "$told.fault" ]; then
        slurm_state=unknown
      elif [ -e "$run_folder/slurm.gone" ]; then
        slurm_state=lost  # it ended, and was forgotten before anybody asked
      fi
      ;;
  esac
}

has_folder() { [ -e "$run_folder/machine0" ]; }  # kill takes it away, and with it where Slurm's answers are kept
runs() {
  has_folder && [ ! -e "$first/over" ] || return
  look_at_job 5
  case $slurm_state in pending | running | unknown) return 0 ;; *) return 1 ;; esac
}
became() {
  has_folder || { echo killed; return; }
  look_at_job 2
  [ "$(slurm_says Reason)" != JobLaunchFailure ] || slurm_state=launch_failed
  case $slurm_state in completed | failed | lost) ;; *) echo "$slurm_state" ;; esac
}
look_at_leader() {
  local seconds
  [ -z "$job" ] || answer job "$job"
  if [ -e "$first/over" ]; then
    answer scheduler_state over
    return
  fi
  if [ node -nt "$told" ]; then look_at_job 0; else look_at_job 2; fi  # it has begun since Slurm was asked
  answer scheduler_state "$slurm_state"
  case $slurm_state in
    pending) answer reason "$(slurm_says Reason)" ;;
    running)
      seconds=$(slurm_says StartTime)
      [ -e exit_code ] || answer up_s $(($(date +%s) - $(date -d "$seconds" +%s 2> /dev/null || date +%s)))
      ;;
    unknown) answer reason "$(cat "$told.fault" 2> /dev/null)" ;;
    *)
      answer reason "$(slurm_says Reason)"
      seconds=$(date -d "$(slurm_says EndTime)" +%s 2> /dev/null) && answer ended_s_ago $(($(date +%s) - seconds))
      ;;
  esac
}
