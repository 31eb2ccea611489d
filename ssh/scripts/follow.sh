# shellcheck shell=bash disable=SC2154
# Prints a job's log from byte `offset` on until the job has ended. Defined before: answer, state, offset.
end() { answer state "$1" >&2; exit "$2"; }
cd "$state" 2> /dev/null || { echo "no such folder: $state" >&2; end lost 1; }
read -r pid start boot < process || end lost 1
stat=$(cat "/proc/$pid/stat" 2> /dev/null)
read -ra fields <<< "${stat##*) }"
if [ "$boot" = "$(< /proc/sys/kernel/random/boot_id)" ] && [ "${fields[19]-}" = "$start" ]; then
  tail -c "+$((offset + 1))" -s 0.2 -F --pid="$pid" log 2> /dev/null
else
  tail -c "+$((offset + 1))" log
fi
for ((i = 0; i < 10; i++)); do
  [ -e exit_code ] && end exited "$(< exit_code)"
  [ -e killed ] && end killed 143
  sleep 0.1
done
end lost 1
