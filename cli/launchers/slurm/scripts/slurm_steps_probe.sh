# shellcheck shell=bash disable=SC2015,SC2154
# How a machine of a run in an allocation of the user's is doing: dtool-host sources this in the machine's state folder, on any
# host that sees it. A session on the allocation's first node leads the run. On other hosts its pid means nothing, and Slurm is
# asked.
first=$(readlink -f ..)/machine0
read -r allocation 2> /dev/null < "$first/allocation"
slurm_state='' is_here='' next_look=0

# Sets slurm_state: running, lost (its leader or the allocation is gone), unknown (Slurm does not answer); and is_here, if this
# host's kernel knows the leader.
look_at_run() {
  local pid start boot stat fields
  if ! read -r pid start boot 2> /dev/null < "$first/process"; then
    slurm_state=lost
    return
  fi
  if [ "$boot" = "$(< /proc/sys/kernel/random/boot_id)" ]; then
    is_here=yes
    { stat=$(< "/proc/$pid/stat"); } 2> /dev/null
    read -ra fields <<< "${stat##*) }"
    slurm_state=lost
    [ "${fields[19]-}" != "$start" ] || [ "${fields[0]}" = Z ] || slurm_state=running
    return
  fi
  [ "$SECONDS" -ge "$next_look" ] || return 0
  next_look=$((SECONDS + 5))
  said=$(timeout 8 squeue --noheader --jobs "$allocation" --format %T 2>&1)
  case $? in
    0) if [ -n "$said" ]; then slurm_state=running; else slurm_state=lost; fi ;;
    124) slurm_state=unknown said='slurmctld does not answer' ;;
    *) if [[ $said == *'Invalid job id'* ]]; then slurm_state=lost; else slurm_state=unknown; fi ;;
  esac
}

runs() {
  [ -e "$first" ] && [ ! -e exit_code ] || return
  look_at_run
  [ "$slurm_state" != lost ]
}
became() { [ -e "$first" ] || echo killed; }  # kill took the folder away
look_at_leader() {
  [ -e "$first/process" ] || return  # not started
  look_at_run
  [ -n "$is_here" ] && [ "$slurm_state" = lost ] || answer job "$allocation"
  if [ -e exit_code ]; then
    answer scheduler_state over
    return
  fi
  answer scheduler_state "$slurm_state"
  case $slurm_state in
    running) answer up_s $(($(date +%s) - $(stat -c %Y "$first/process"))) ;;
    unknown) answer reason "${said//$'\n'/ }" ;;
  esac
}
