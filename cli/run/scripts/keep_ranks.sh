# shellcheck shell=bash disable=SC2154
# Follows words.sh. One machine's part of a run whose processes mpirun starts: waits for those of this machine, and ends as they do. On machine 0
# start_mpirun (mpirun.sh, which comes before this there) starts mpirun. Defined before: by the numbers state, attempt, place;
# slots_of (array, by place). A process leaves ranks/ATTEMPT.LOCAL_RANK in the state folder, its program's pid in
# that with .program, how it ended with .code, and .told where mpirun told it to end (numbers_mpi.sh, rank.sh).
# Numbers by the plan, the numbers and look_at_ranks: place slots_of $1.
mpirun="" mpirun_failed_at=''
exec 4<> <(:)  # has nothing to read: a pause that costs no process
pause() { read -rt 0.2 -u 4; }
look_at_clock() { read -r now _ < /proc/uptime; now=${now%.*}; }

lives() {  # $1: pid, $2: start time
  local stat fields
  read -r stat 2> /dev/null < "/proc/$1/stat" || return 1
  read -ra fields <<< "${stat##*) }"
  # Its main thread alone may have ended.
  [ "${fields[19]-}" = "$2" ] && { [ "${fields[0]}" != Z ] || [ "${fields[17]}" -gt 1 ]; }
}

# Looks at all ranks of this machine. Sets waiting (how many have not ended), begun (how many ever began), told (whether one was
# told to end), and failed (local rank) with failed_with where one failed by itself.
look_at_ranks() {
  local i file pid start ended_with
  waiting=0 begun=0 told='' failed=''
  for ((i = 0; i < slots_of[place]; i++)); do
    file=$state/ranks/$attempt.$i
    if ! read -r pid start 2> /dev/null < "$file"; then
      ((++waiting))
      continue
    fi
    ((++begun))
    if [ ! -e "$file.code" ] && lives "$pid" "$start"; then
      ((++waiting))
    elif [ -e "$file.told" ]; then
      told=yes
    elif ! { read -r ended_with 2> /dev/null < "$file.code" && is_number "$ended_with"; }; then
      [ -n "$failed" ] || failed=$i failed_with=137  # killed, with what it kept watch over
    elif [ "$ended_with" != 0 ] && [ -z "$failed" ]; then
      failed=$i failed_with=$ended_with
    fi
  done
}

# Where nobody supervises the run, the others of this machine end with one that failed, as without mpirun.
end_ranks() {
  local file pid start signal group
  for signal in TERM KILL; do
    for file in "$state/ranks/$attempt".*; do
      if [[ $file == *[!0-9] ]]; then continue; fi
      if ! read -r pid start < "$file" || ! is_number "$pid" || ! lives "$pid" "$start"; then continue; fi
      kill "-$signal" "$pid" 2> /dev/null
      # The group of one is everybody.
      if [ "$signal" = KILL ] && read -r group < "$file.program" && is_number "$group" && ((group > 1)); then
        kill -KILL "-$group" 2> /dev/null
      fi
    done
    for ((i = 0; i < 25; i++)); do
      look_at_ranks
      if [ "$waiting" = 0 ]; then return; fi
      pause
    done
  done
}

fail_with_rank() {  # $1: local rank, $2: exit code
  local first_rank
  read -r first_rank < "$state/first_failure"
  is_number "$first_rank" || first_rank=0
  echo $((first_rank + $1)) > "$state/first_failure"
  if [ ! -e "$state/supervise" ]; then
    end_ranks
    [ -z "$mpirun" ] || wait "$mpirun"  # the other machines' processes go on
  fi
  exit "$2"
}

# mpirun's first words that say something, and which host it lost where it did.
words_of_mpirun() {
  tr -cd '[:print:]\n' < "$state/mpirun.said" | awk '
    / Remote daemon: .* on node / { host = " (" $NF ")" }
    /^-*$/ { if (text != "") over = 1; next }  # around and between its paragraphs
    /^(Primary job|a non-zero exit code|Terminated|ORTE was unable to reliably|\[.*(PMIX ERROR|Warning: setpgid))/ { next }
    !over { sub(/^ */, ""); text = text (text == "" ? "" : " ") $0 }
    END { print substr(text == "" ? "mpirun left no word of why" : text, 1, 500) host }'
}

fail_with_mpirun() {  # $1: exit code
  echo mpirun > "$state/first_failure"
  words_of_mpirun
  exit "$1"
}

# The words of others' failures come in from other machines, up to this many seconds later than mpirun's end.
patience=5
longest_start=300

look_at_mpirun() {
  if [ -n "$mpirun" ] && ! kill -0 "$mpirun" 2> /dev/null; then
    wait "$mpirun" 2> /dev/null  # bash's own word on a killed one is none of mpirun's
    mpirun_code=$?
    mpirun=''
    [ "$mpirun_code" = 0 ] || mpirun_failed_at=$now
  fi
  if [ -n "$mpirun_failed_at" ] && ((now - mpirun_failed_at >= patience)); then fail_with_mpirun "$mpirun_code"; fi
}

keep_ranks() {
  local began told_at=''
  look_at_clock
  began=$now
  while :; do
    look_at_clock
    look_at_ranks
    [ -z "$failed" ] || fail_with_rank "$failed" "$failed_with"
    [ "$place" != 0 ] || look_at_mpirun
    if [ "$waiting$mpirun$mpirun_failed_at$told" = 0 ]; then exit 0; fi
    # Those that were told to end are not the cause; who is will have been heard by now.
    if [ -n "$told" ] && [ "$waiting" = 0 ]; then
      : "${told_at:=$now}"
      if ((now - told_at >= 2 * patience)); then exit 143; fi
    fi
    if [ "$begun" = 0 ] && ((now - began >= longest_start)); then
      echo "dtool: mpirun on machine 0 has started no process here in $longest_start s" >&2
      exit 1
    fi
    pause
  done
}

[ "$place" != 0 ] || start_mpirun
: > "$state/begun"
keep_ranks
