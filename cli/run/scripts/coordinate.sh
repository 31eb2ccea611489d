# shellcheck shell=bash disable=SC2154
# What machine 0's session does beyond supervise.sh, which comes before this: it hears all machines' reports and decides
# what becomes of the run. Defined before: hosts (array of names, by place).
# Numbers by supervise.sh and the plan: attempt began hundredths max_restarts now patience.
members=("${!hosts[@]}")  # who takes part in this attempt
phase=running             # then gathering and running again, or over
reports=() heard=() failures=() first_failure_at='' gathering_since='' searched_at=''
silence=60  # seconds without a report; a switch that restarts takes less

note_report() {  # $1: place, $2: report
  local of state code text
  is_place "$1" || return
  look_at_clock
  heard[$1]=$now
  [ "${reports[$1]-}" != "$2" ] && is_report "$2" || return
  reports[$1]=$2
  read -r of state code text <<< "$2"
  [ "$of" = "$attempt" ] || return
  # With a text, gone means that a machine gave up by itself, before there was a decision.
  if [ "$state" = failed ] || { [ "$phase $state" = 'running gone' ] && [ -n "$text" ]; }; then add_failure "$code" "$text"; fi
}

add_failure() {  # $1: exit code, $2: text
  failures+=("$1 $2")
  [ -n "$first_failure_at" ] || first_failure_at=$hundredths
}

# Machines that have reported and are silent now; one that never did is watched by nobody (a firewall may be between).
find_lost() {
  local machine
  # A thousand machines' reports wake this process hundreds of times a second.
  [ "$now" != "$searched_at" ] || return
  searched_at=$now
  for machine in "${members[@]}"; do
    if [ "$machine" = 0 ] || ((now - ${heard[machine]:-now} <= silence)); then continue; fi
    # What has ended says no more than that; what has not begun this attempt may have died between two.
    case ${reports[machine]} in "$attempt running "*) ;; "$attempt "*) continue ;; esac
    reports[machine]="$attempt lost 1"
    add_failure 1 "machine $machine (${hosts[machine]}) was lost: no sign of life for $silence s"
  done
}

# Whether all members have said $1 of this attempt; those aside that are lost, or have not been heard for too long to hope.
all_said() {
  local machine
  for machine in "${members[@]}"; do
    case ${reports[machine]-never} in
      "$attempt $1 "* | "$attempt lost "* | "$attempt gone "*) ;;
      never) ((now - began > patience)) || return 1 ;;
      *) return 1 ;;
    esac
  done
}

# Or has not begun this attempt, as far as is known.
is_any_running() {
  local machine
  for machine in "${members[@]}"; do
    case ${reports[machine]-never} in never | "$attempt running "*) return ;; "$attempt "*) ;; *) return ;; esac
  done
  return 1
}

decide() {
  decision=$1
  [ -z "$helper" ] || tell_helper "$decision"
}

# The first failure is the cause, unless a process was killed about then: those do not follow from others' failures.
judge_failures() {
  local chosen=${failures[0]} each
  for each in "${failures[@]}"; do
    case $each in '137 '*) chosen=$each; break ;; esac
  done
  # A mistake in an experiment stays one.
  if ((attempt < max_restarts)) && { [ -z "$trainer" ] || [ "${chosen%% *}" != 2 ]; }; then
    phase=gathering gathering_since=$now
    decide "$attempt gather ${chosen#* }"
  else
    phase=over
    decide "$attempt end ${chosen#* }"
  fi
}

begin_next_attempt() {
  local machine answered=()
  for machine in "${members[@]}"; do
    case ${reports[machine]-} in "$attempt stopped "*) answered+=("$machine") ;; esac
  done
  members=("${answered[@]}") failures=() first_failure_at='' phase=running
  decide "$((attempt + 1)) run ${members[*]}"
}

coordinate() {
  local machine
  look_at_clock
  # While this process was frozen, nobody was heard.
  if ((now - ${looked_at:-now} > 5)); then
    for machine in "${!heard[@]}"; do heard[machine]=$now; done
  fi
  looked_at=$now
  case $phase in
    running)
      find_lost
      if [ -n "$first_failure_at" ]; then
        # Half a second for others' reports: which failure was first is not always which was heard first.
        if ((hundredths - first_failure_at >= 50)) || ! is_any_running; then judge_failures; fi
      elif all_said ended; then
        phase=over
        decide "$attempt done"
      fi
      ;;
    gathering)
      if all_said stopped || ((now - gathering_since > 30)); then begin_next_attempt; fi
      ;;
  esac
}

# Sets tool to what can take reports; empty: nothing can. Perl without Digest::SHA is slower, and a Perl of 32 bits cannot then.
find_tool() {
  tool=perl
  perl -MSocket -MDigest::SHA -e '' || { tool=python3 && python3 -c 'import hashlib, hmac, socket'; } ||
    { tool=perl && perl -MSocket -e 'exit !(~0 >> 32)'; } || tool=''
} 2> /dev/null

start_helper() {
  local tool
  [ ${#hosts[@]} != 1 ] || return
  find_tool
  if [ -z "$tool" ]; then
    echo 'neither perl nor python3 is on machine 0: the machines do not hear of each other' > supervision
    return
  fi
  exec 7> >(exec "$tool" "./take_reports.$tool" "$coordinator_port" "${#hosts[@]}" >&8 2>&1)
  helper=$!
  echo ok > supervision
}
