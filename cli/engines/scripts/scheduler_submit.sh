# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# Starts a run's job: submits it to the scheduler. Defined before: make_folders, members (of the job's array; 1: there is none),
# and the scheduler's functions.
begin() {
  local said code
  make_folders probe
  command -v "${programs%% *}" > /dev/null || fail "${programs%% *} is not there"
  said=$(submit_job ./batch "${state%/*}" 2> submit.err)
  code=$?
  if [ "$code" != 0 ] || [[ ! $said =~ ^[0-9]+ ]]; then fail "${programs%% *}: $(tr '\n' ' ' < submit.err)"; fi
  said=${BASH_REMATCH[0]}
  echo "$said" > job.new && mv job.new job
  answer job "$said"
  answer started "job $said"
}
