# shellcheck shell=bash disable=SC2154
# How a run's job is ended: kill (ssh/host/kill.cpp) sources it in the first machine's state folder. Cancels the job and waits until Slurm has none of it any
# more. Defined before: answer, run_id.
slurm_jobs() {  # of this run: those of the recorded id, and those of its name, which stand for a start that was cut off
  local ids
  ids=$(timeout 20 squeue --noheader --me --name "$run_id" --format %A 2>&1) || { echo "$ids" >&2; return 1; }
  printf '%s\n' "$ids" | grep -E '^[0-9]+$' | sort -u
  return 0
}
end_jobs() {
  local jobs i fault
  if ! command -v squeue > /dev/null; then answer job_left "Slurm's commands are not there any more: scancel --name $run_id on a login node"; return; fi
  if ! jobs=$(slurm_jobs 2> end.fault); then answer job_left "$(tr '\n' ' ' < end.fault)"; return; fi
  [ -n "$jobs" ] || return
  for ((i = 0; i < 240; i++)); do
    # Again now and then: a job that is just being put back into the queue may miss the first.
    # shellcheck disable=SC2086
    ((i % 20)) || fault=$(timeout 15 scancel $jobs 2>&1)
    if [ -z "$(slurm_jobs 2> end.fault)" ] && [ ! -s end.fault ]; then
      answer cancelled "job ${jobs//$'\n'/, }"
      return
    fi
    sleep "$((i < 10 ? 0 : 1)).2"
    [ "$SECONDS" -lt 85 ] || break
  done
  answer job_left "job ${jobs//$'\n'/, } of Slurm: $(timeout 20 squeue --noheader --me --name "$run_id" --format '%T on %N' 2>&1 | head -n 1) $fault"
}
end_jobs
