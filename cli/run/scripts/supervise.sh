# shellcheck shell=bash disable=SC2154
# Runs one machine's part of a run: reports how it goes to the run's coordinator, and does what that decides. Machine 0's
# session is the coordinator (coordinate.sh, which comes behind this there). session.sh sources it. Follows words.sh. Defined before,
# too: log, viewer, record_end (session.sh's); place (this machine's among the run's), host (its name), places (how many the run has), trainer
# (of the bundled one; empty: a program of the user's), max_restarts, coordinator_address, coordinator_port.
#
# A report is `ATTEMPT running|ended|failed|stopped|left_out CODE TEXT`, a decision `ATTEMPT run PLACE...`,
# `ATTEMPT gather TEXT`, `ATTEMPT end TEXT` or `ATTEMPT done`. A helper process, which reads ours on its standard input,
# carries them; what it prints arrives on descriptor 8. Nothing of it needs the disk, which may be full.
# Numbers by the plan, and of decisions that were matched: max_restarts of places.
attempt=0 script='' script_began=0 state='' code=0 decision='' obeyed='' contact=none over='' stopped='' helper='' told='' replaced_at='' event='' gave_way=''
patience=120  # seconds until a machine that has never been heard is given up
trap : PIPE  # a helper that is gone must not end this
exec 8<> <(:) 6<> <(:)  # 6 has nothing to read: a pause that costs no process

is_place() { is_number "$1" && (($1 < places)); }
ordinal() { echo "$((attempt + 1)) of $((max_restarts + 1))"; }  # people count from 1
say() { printf 'dtool: %s\n' "$1" >> "$log"; }
# Sets now and hundredths, both since the boot: a clock that is set meanwhile does not count.
# shellcheck disable=SC2034
look_at_clock() { read -r now _ < /proc/uptime; hundredths=${now/./} now=${now%.*}; }
# Sets kills to how often the kernel has ended a process for want of memory.
count_out_of_memory_kills() {
  local counters
  IFS= read -rd '' counters < /proc/vmstat
  kills=''
  if [[ $counters =~ oom_kill\ ([0-9]+) ]]; then kills=${BASH_REMATCH[1]}; fi
}

# Prints $1 as others take it (is_report).
in_ascii() {
  local LC_ALL=C text
  text=${1//[^[:print:]]/?}
  printf %s "${text:0:1500}"
}

report() {  # $1: state, $2: exit code, $3: text
  state=$1
  local line
  line="$attempt $1 $2 $(in_ascii "$3")"
  if [ "$place" = 0 ]; then note_report 0 "$line"; else tell_helper "$line"; fi
}

# Once dtool kill has begun, it ends what is here, this too. Until then nothing may be told, ended or started: the programs have
# the grace that its user gave them. A kill that was itself cut off is not waited for longer than it may take.
give_way_to_kill() {
  local limit
  if [ -n "$gave_way" ] || [ ! -e killed ]; then return; fi
  read -r limit < killed
  is_number "$limit" || limit=600
  read -rt "$limit" -u 6
  gave_way=yes
}

tell_helper() {
  told=$1
  printf '%s\n' "$1" >&7
} 2> /dev/null

# A helper that was killed, for want of memory for one, is replaced; one that never reached anybody has said why.
keep_helper() {
  if [ -z "$helper" ] || kill -0 "$helper" 2> /dev/null || [ "$now" = "$replaced_at" ]; then return; fi
  if [ "$place" = 0 ] && ((${#heard[@]} < 2)); then return; fi
  give_way_to_kill
  replaced_at=$now
  exec 7>&-
  start_helper
  [ -z "$told" ] || tell_helper "$told"
}

start_attempt() {  # $1...: places of the machines that take part; none: all
  if [ "$attempt" != 0 ]; then
    # As in start.sh, which holds the lock at the first start: there is either kill's mark or processes that bear the id.
    exec 9>> lock
    flock 9
    if [ -e killed ]; then exit 143; fi
  fi
  count_out_of_memory_kills
  kills_before=$kills
  # Bash has what it runs aside ignore Ctrl-C otherwise, in an attached session, too.
  (trap - INT QUIT; exec bash ./script "$attempt" "$@") >> "$log" 2>&1 6>&- 7>&- 8>&- 9>&- &
  script=$!
  script_began=$now
  exec 9>&-
  stopped=''
  report running 0 ''
}

# The last line of this attempt that is neither dtool's own on ranks and attempts nor mpirun's.
last_line() {
  tail -c 8192 "$log" | tr '\r\0\t' '\n  ' | tr -cd '[:print:]\n' |
    awk '/^dtool: attempt .* begins$/ { last = "" } /^(dtool: (attempt|rank|the run failed)|mpirun: )/ { next } NF { last = $0 } END { print last }'
}

# Sets cause to why the script failed, in one line.
find_cause() {
  local who what last
  read -r who 2> /dev/null < first_failure  # a rank, or what started the ranks
  ! is_number "$who" || who="rank $who"
  what="ended with exit code $code"
  if ((code > 128)) && last=$(kill -l $((code - 128)) 2> /dev/null); then what="was killed by signal $((code - 128)) ($last)"; fi
  count_out_of_memory_kills
  if ((code == 137)) && [ "$kills" != "$kills_before" ]; then what+=': the kernel ran out of memory'; fi
  cause="$who on machine $place ($host) $what"
  last=$(last_line)
  if [ -n "$trainer" ]; then
    case $last in 'dtool-trainer: '*) cause=${last#dtool-trainer: } ;; esac
  elif [ -n "$last" ]; then
    cause+=": $last"
  fi
  cause=${cause:0:1000}
}

look_at_script() {
  if [ -z "$script" ] || kill -0 "$script" 2> /dev/null; then return; fi
  give_way_to_kill
  wait "$script"
  code=$?
  script=''
  if [ "$code" = 0 ]; then
    # Where nothing can be started again, that was this machine's end.
    [ "$max_restarts" != 0 ] || record_end 0
    report ended 0 ''
  else
    find_cause
    failed_at=$now
    report failed "$code" "$cause"
  fi
}

# Ends what the run has here, but for this session and its helpers.
stop() {
  # The bundled trainer learns of a failure by itself, and has the better words.
  if [ -n "$trainer" ]; then
    for ((i = 0; i < 25; i++)); do
      if [ -z "$script" ] || ! kill -0 "$script" 2> /dev/null; then break; fi
      read -rt 0.2 -u 6
    done
  fi
  if [ -n "$script" ] && kill -0 "$script" 2> /dev/null; then stopped=yes; fi
  # shellcheck disable=SC2086
  bash ./end_processes "$viewer" $helper > ended 2>&1
  if [ -n "$script" ]; then
    wait "$script"
    code=$?
    script=''
  fi
}

# The run is over, with a text on why it failed, or none.
finish() {
  over=yes
  if [ -n "$1" ]; then
    printf '%s\n' "$1" > cause.new && mv -f cause.new cause
    # The bundled trainer has said it already.
    [ "$(last_line)" = "dtool-trainer: $1" ] || say "the run failed: $1"
  fi
  [ -z "$stopped" ] || : > stopped
  [ -e exit_code ] || record_end "$code"
  report gone "$code" "$1"
}

set_attempt() {
  attempt=$of
  printf '%s\n' "$attempt" > attempt
}

obey() {
  local of verb rest each
  [ "$decision" != "$obeyed" ] || return
  give_way_to_kill
  obeyed=$decision
  is_decision "$decision" || return
  read -r of verb rest <<< "$decision"
  if [ "$verb" = run ]; then
    for each in $rest; do is_place "$each" || return; done
  fi
  if [ "$verb" != run ] && ((of > attempt)); then set_attempt; fi  # an attempt that ended before this machine had begun it
  case $verb in
    run)
      ((of > attempt)) || return
      [ -z "$script" ] || stop
      set_attempt
      case " $rest " in
        *" $place "*)
          say "attempt $(ordinal) begins"
          # shellcheck disable=SC2086
          start_attempt $rest
          ;;
        *)
          code=143 stopped=yes
          say "attempt $(ordinal) begins without this machine, which did not answer"
          report left_out "$code" ''
          ;;
      esac
      ;;
    gather)
      [ "$of" = "$attempt" ] || return
      stop
      say "attempt $(ordinal) failed: $rest"
      report stopped "$code" ''
      ;;
    end) stop; finish "$rest" ;;
    'done')
      # Nobody waits for a machine that was heard too late; it ends as its script does.
      if [ -z "$script" ]; then finish ''; else contact=none; fi
      ;;
  esac
}

# The run goes on, or ends, without a coordinator.
lose_contact() {
  contact=lost
  printf '%s\n' "$1" > supervision
  if [ "$state" = ended ]; then decision="$attempt done"; else decision="$attempt end $1"; fi
}

take_event() {  # $1: kind, $2: what
  case $1 in
    report) note_report "${2%% *}" "${2#* }" ;;
    decision)
      is_decision "$2" || return
      decision=$2
      if [ "$contact" != made ]; then contact=made; echo ok > supervision; fi
      ;;
    lost) if [ "$contact" = made ]; then lose_contact "$2"; else printf '%s\n' "$2" > supervision; fi ;;
  esac
}

# Takes all that waits, or what comes within a while: a fifth of a second in an attempt's first moments, when most that can go
# wrong does, and while a failure is judged; then a second, since a look costs the host a third of a millisecond.
take_events() {
  local part status rest=1
  if ((now - script_began < 20)) || [ -n "${first_failure_at-}" ]; then rest=0.2; fi
  while :; do
    IFS= read -rt "$rest" -u 8 part
    status=$?
    event+=$part  # the time may run out in the middle of a line
    [ "$status" = 0 ] || return
    take_event "${event%% *}" "${event#* }"
    event=''
    read -rt 0 -u 8 || return
  done
}

# Takes what has happened, and acts on it.
turn() {
  look_at_clock
  take_events
  look_at_script
  keep_helper
  if [ "$place" = 0 ]; then
    coordinate
  elif [ "$contact" != made ] && [ "$state" = failed ] && ((now - failed_at > 10)); then
    finish "$cause"  # nobody is there to decide
  elif [ "$contact" != made ] && [ "$state" = ended ] && ((now - began > patience)); then
    finish ''
  fi
}

start_helper() {
  local pause=$((1 + places / 250))
  exec 7> >(exec bash ./report "$place" "$coordinator_address" "$coordinator_port" "$pause" >&8 2> /dev/null)
  helper=$!
}

supervise() {
  start_helper
  look_at_clock
  began=$now
  start_attempt
  while [ -z "$over" ]; do
    turn
    obey
  done
  # The last report is still to be told, or to be heard.
  if [ "$place" = 0 ]; then
    local since=$now
    until all_said gone || ((now - since >= 15)); do turn; done
  fi
  exec 7>&-
  [ -z "$helper" ] || wait "$helper"
}
