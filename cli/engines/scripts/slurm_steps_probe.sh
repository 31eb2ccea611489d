# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# How an allocation of the user's is doing, for dtool-host on hosts where the session that leads the run is not
# (ssh/host/session/scheduled_job.h).
ask_job() {  # $1: its id
  local said code
  said=$(timeout 8 squeue --noheader --jobs "$1" --format %T 2>&1)
  code=$?
  [ "$code" != 124 ] || said='slurmctld does not answer'
  case $code,$said in
    0, | *'Invalid job id'*) ;;
    0,*) echo '* running' ;;
    *) echo "$said"; return 1 ;;
  esac
}
