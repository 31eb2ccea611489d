#!/usr/bin/env bash
# Runs inside a job's session, in its state folder, with the log's path as argument: runs `script`, shows its
# log where the session has a terminal, records its end. `supervise`, where the job has one, decides instead how often `script` runs, and when it is over.
# It survives Ctrl-C in an attached session and the loss of its terminal, so that the end is recorded; the script gets the
# signal.
log=$1
read -r stat < /proc/$$/stat
read -ra fields <<< "${stat##*) }"
read -r boot < /proc/sys/kernel/random/boot_id
# The end has its room on the disk before there can be too little.
printf '\n\n\n\n' > exit_code.new || exit
printf '%s %s %s\n' "$$" "${fields[19]}" "$boot" > process.new || exit
mv -f process.new process
trap : INT HUP
viewer=''
if [ -t 1 ]; then
  tail -n +1 -f --pid=$$ "$log" &
  viewer=$!
fi

# Records how the job ended; whoever follows it goes away then.
record_end() { printf '%s\n' "$1" 1<> exit_code.new && sync exit_code.new && mv -f exit_code.new exit_code; }

if [ -e supervise ]; then
  # shellcheck source=/dev/null
  # runs: what dtool wrote there.
  . ./supervise
else
  bash ./script >> "$log" 2>&1
  code=$?
  record_end "$code"
fi
[ -z "$viewer" ] || kill "$viewer" 2> /dev/null
exit "$code"
