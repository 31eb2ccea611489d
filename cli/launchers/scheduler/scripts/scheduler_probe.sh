# shellcheck shell=bash disable=SC2154
# How a machine of a scheduler's run is doing: dtool-host sources this in the machine's state folder. Defined before: nodes (of
# the job), and the scheduler's functions.
# Numbers by the plan and date: nodes seconds.
run_folder=$(readlink -f ..)
machine=${PWD##*machine}
[[ $machine =~ ^[0-9]{1,9}$ ]] || machine=0
task=$((machine / nodes))
first=$run_folder/machine$((task * nodes))
job=$(cat "$run_folder/machine0/job" 2> /dev/null)
told=$run_folder/told  # the scheduler's last answer for all machines of the run, one per line: TASK STATE START END REASON

# Asks the scheduler if its last answer is older than $1 seconds. The scheduler forgets a finished job after a while; then the
# last answer stays.
ask_scheduler() {
  local said now file
  now=$(date +%s)
  for file in "$told" "$told.fault"; do
    [ $((now - $(stat -c %Y "$file" 2> /dev/null || echo 0))) -ge "$1" ] || return 0
  done
  (
    flock -n 9 || { [ -e "$told" ] || flock 9; exit; }
    if ! said=$(ask_job "$job" 2>&1); then
      printf '%s\n' "${said//$'\n'/ }" > "$told.fault"
      exit
    fi
    if [ -n "$said" ]; then printf '%s\n' "$said" > "$told.new" && mv -f "$told.new" "$told"; else : > "$told.gone"; touch "$told"; fi
    rm -f "$told.fault"
  ) 9>> "$told.lock"
}
# Sets job_state: pending, running, completed, failed, cancelled, timed_out, node_failed, out_of_memory, preempted, lost (the
# scheduler does not know the job), unknown (it does not answer); and job_start, job_end and job_reason, if it reports them.
look_at_job() {
  job_state=lost job_start='' job_end='' job_reason=''
  [ -n "$job" ] || return
  ask_scheduler "$1"
  read -r job_state job_start job_end job_reason < <(awk -v task="$task" '
    { line = $0; sub(/^[^ ]+ /, "", line) }
    $1 == task { exact = line }
    $1 == "*" { others = line }
    END { print exact == "" ? others : exact }' "$told" 2> /dev/null)
  case $job_state in
    '' | pending | running)
      if [ -e "$told.fault" ]; then
        job_state=unknown
      elif [ -e "$told.gone" ]; then
        job_state=lost  # it ended, and was forgotten before the next question
      fi
      ;;
  esac
  job_state=${job_state:-unknown}
}

has_folder() { [ -e "$run_folder/machine0" ]; }  # kill deletes it, and with it the folder of the scheduler's answers
runs() {
  has_folder && [ ! -e "$first/over" ] || return
  look_at_job 5
  case $job_state in pending | running | unknown) return 0 ;; *) return 1 ;; esac
}
became() {
  has_folder || { echo killed; return; }
  look_at_job 2
  [[ $job_reason != JobLaunchFailure* ]] || job_state=launch_failed
  case $job_state in completed | failed | lost) ;; *) echo "$job_state" ;; esac
}
look_at_leader() {
  local seconds
  answer scheduler "$scheduler"
  [ -z "$job" ] || answer job "$job"
  if [ -e "$first/over" ]; then
    answer scheduler_state over
    return
  fi
  if [ node -nt "$told" ]; then look_at_job 0; else look_at_job 2; fi  # it has begun since the scheduler was last asked
  answer scheduler_state "$job_state"
  case $job_state in
    pending) answer reason "$job_reason" ;;
    running) [ -e exit_code ] || answer up_s $(($(date +%s) - $(date -d "$job_start" +%s 2> /dev/null || date +%s))) ;;
    unknown) answer reason "$(cat "$told.fault" 2> /dev/null)" ;;
    *)
      answer reason "$job_reason"
      seconds=$(date -d "$job_end" +%s 2> /dev/null) && answer ended_s_ago $(($(date +%s) - seconds))
      ;;
  esac
}
