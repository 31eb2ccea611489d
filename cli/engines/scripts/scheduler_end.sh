# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# Ends a run's job: dtool-host sources this in the first machine's state folder. Cancels the job and waits until the scheduler
# has nothing left of it. Defined before: answer, run_id, and the scheduler's functions.
end_jobs() {
  local jobs i fault
  if ! command -v "${programs%% *}" > /dev/null; then
    answer job_left "${scheduler}'s commands are not there any more: $how_to_cancel $run_id on a login node"
    return
  fi
  if ! jobs=$(jobs_of_run 2> end.fault); then answer job_left "$(tr '\n' ' ' < end.fault)"; return; fi
  if [ -n "$jobs" ]; then
    for ((i = 0; i < 240; i++)); do
      # Repeats the request now and then: a job that is just being put back into the queue may miss the first one.
      # shellcheck disable=SC2086
      ((i % 20)) || fault=$(cancel_jobs $jobs 2>&1)
      [ -n "$(jobs_of_run 2> end.fault)" ] || [ -s end.fault ] || break
      sleep "$((i < 10 ? 0 : 1)).2"
      [ "$SECONDS" -lt 85 ] || i=1000
    done
    if ((i >= 240)); then
      answer job_left "job ${jobs//$'\n'/, } of $scheduler: $(describe_jobs) $fault"
      return
    fi
  fi
  if ! fault=$(end_rest); then answer job_left "$fault"; return; fi
  [ -z "$jobs" ] || answer cancelled "job ${jobs//$'\n'/, }"
}
end_jobs
