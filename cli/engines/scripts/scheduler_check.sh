# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# Asks whether the scheduler would accept the job, without submitting it. Defined before: lack_of, batch (the job's script;
# empty: none is queued), and the scheduler's functions.
for program in $programs; do
  command -v "$program" > /dev/null && continue
  lack_of "$program is not there" "--runs_on names a login host of the cluster; on Debian ${scheduler}'s commands are in $package"
  return
done
[ -n "$batch" ] || return  # inside an existing allocation
said=$(try_job <<< "$batch" 2>&1) && return
! may_wait "$said" || return
lack_of "$scheduler does not take the job: ${said:-it did not answer within 40 s}" "$(hint_of "$said")"
