# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# Ends a run's steps in an allocation of the user's: kill (ssh/host/kill.cpp) sources this in the first machine's state folder,
# and itself ends the processes of this host. Defined before: answer, run_id, allocation (the job's id).
steps() {
  timeout 15 squeue --noheader --steps --jobs "$allocation" --format '%i %j' 2> /dev/null | awk -v name="$run_id" '$2 == name { print $1 }'
}
end_steps() {
  local all i
  all=$(steps)
  [ -n "$all" ] || return
  for ((i = 0; i < 100; i++)); do
    # shellcheck disable=SC2086
    ((i % 20)) || timeout 15 scancel $all 2> /dev/null
    [ -n "$(steps)" ] || { answer cancelled "step ${all//$'\n'/, }"; return; }
    sleep 0.3
  done
  answer job_left "step ${all//$'\n'/, } of Slurm"
}
end_steps
# Once the allocation is over, nothing of it is left on any host: Slurm vouches for that. An allocation that is just ending is
# waited for.
for ((i = 0; i < 100; i++)); do
  said=$(timeout 15 squeue --noheader --jobs "$allocation" --format %T 2>&1)
  case $?,$said in
    0,COMPLETING*) sleep 0.3 ;;
    0, | *'Invalid job id'*) answer vouched_for "by Slurm: job $allocation is over"; break ;;
    *) break ;;
  esac
done
