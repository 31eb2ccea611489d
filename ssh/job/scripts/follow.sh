# shellcheck shell=bash disable=SC2154
# Prints a job's log from byte `offset` on until the job has ended; its session may outlast it, to supervise others. Where no session
# of ours leads the job, `probe` in the state folder defines runs, and became: prints what became of a job that left no exit code.
# Defined before: answer, identify, state, offset; and by who
# wants to come back (cli/run/scripts/resume.sh) `file`, which is followed first, and `unique`, a path of /proc/self/fd/3 that stands in
# no log. Then a line `tail: $unique: TEXT` in the output is no line of the log: `file truncated`, which is tail's own, and `rotated`.
# A log that was renamed is followed until another one of its name has content: jobs keep the file that they have open.
end() { answer state "$1" >&2; exit "$2"; }
cd "$state" 2> /dev/null || { echo "no such folder: $state" >&2; end lost 1; }
if [ -e probe ]; then
  # shellcheck source=/dev/null
  # runs: what dtool wrote there.
  . ./probe
else
  read -r pid start boot < process || end lost 1
  boot_now=$(< /proc/sys/kernel/random/boot_id)
  runs() {
    local stat fields
    [ "$boot" = "$boot_now" ] && [ ! -e exit_code ] && read -r stat 2> /dev/null < "/proc/$pid/stat" || return
    read -ra fields <<< "${stat##*) }"
    [ "${fields[19]-}" = "$start" ]
  }
  became() { [ -e process ] || echo killed; }  # kill took the folder away
fi
# Whether this is another host than the one where the job was started: what cannot be seen here proves nothing then.
is_elsewhere() {
  local id name boot space recorded=()
  if [ -e probe ] || ! read -ra recorded 2> /dev/null < host; then return 1; fi
  identify
  read -r id name boot space <<< "$identity"
  if [ "$boot" = "${recorded[2]-}" ]; then
    [ "$space" != "${recorded[3]-}" ]
  else
    [ "$id" = - ] || [ "$id $name" != "${recorded[0]} ${recorded[1]-}" ]
  fi
}
is_replaced() { [ -s log ] && [ ! log -ef /proc/self/fd/3 ]; }
exec 4<> <(:)  # has nothing to read: a pause that costs no process
pause() { read -rt 0.2 -u 4; }
# Ends when there is another file to follow, or none: with the job, or with the connection, since the byte a second cannot be written then.
watch() {
  local i
  for ((i = 1; ; i++)); do
    runs && ! is_replaced || return
    ((i % 5)) || printf '\n' >&2 || return
    pause
  done
}
if [ -n "${unique-}" ]; then exec 5>&1; else exec 5> /dev/null; fi
file=${file:-log}
while :; do
  until [ -r "$file" ]; do
    runs || break 2
    pause
  done
  exec 3< "$file"
  watch &
  watcher=$!
  LC_ALL=C tail -c "+$((offset + 1))" -s 0.2 -f --pid="$watcher" "${unique:-/proc/self/fd/3}" 2>&5
  wait "$watcher"
  is_replaced || break
  printf 'tail: %s: rotated\n' "${unique-}" >&5
  offset=0
  file=log
done
for ((i = 0; i < 10; i++)); do
  if [ -e exit_code ]; then end "$([ -e stopped ] && echo stopped || echo exited)" "$(< exit_code)"; fi
  if is_elsewhere; then end unproven 1; fi
  [ -e killed ] && end killed 143
  sleep 0.1
done
state=$(became)
case $state in
  '') end lost 1 ;;
  killed) end killed 143 ;;
  *) end "$state" 1 ;;
esac
