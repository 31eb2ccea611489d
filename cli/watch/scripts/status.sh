# shellcheck shell=bash disable=SC2154
# Tells how one machine's part of a run is doing. Defined before: answer, identity, run_id, state, log, output (paths; output may be
# empty); and where the state alone is wanted, brief=yes. Reads the ends of files alone, however large they are, and writes nothing.
# Numbers by printf and the kernel: now fields.
LC_ALL=C
printf -v now '%(%s)T' -1
age_of() { answer "$1" $((now - $(stat -c %Y "$2" 2> /dev/null || echo "$now"))); }

# The processes that bear the run's id, without what only looks at them. Those of a job that has no session here are elsewhere.
found=()
[ -n "${brief-}" ] || [ -e "$state/probe" ] || mapfile -t found < <(printf '%s\0' /proc/[0-9]*/environ | xargs -0 grep -lsxzF "DTOOL_RUN_ID=$run_id")
pids=()
for pid in "${found[@]}"; do
  pid=${pid#/proc/} pid=${pid%/environ}
  # Root reads other users' environments too, who may write there what they like.
  while read -r name uid _; do
    [ "$name" != Uid: ] || { [ "$uid" != "$EUID" ] || pids+=("$pid"); break; }
  done 2> /dev/null < "/proc/$pid/status"
done

# Sets ticks (of CPU time) and pages (resident) of those processes together.
measure() {
  local pid stat fields
  ticks=0 pages=0 processes=0
  for pid in "${pids[@]}"; do
    { stat=$(< "/proc/$pid/stat"); } 2> /dev/null || continue
    read -ra fields <<< "${stat##*) }"
    [ "${fields[0]-Z}" = Z ] && [ "${fields[17]-0}" -lt 2 ] && continue  # but where only its main thread has ended
    ticks=$((ticks + fields[11] + fields[12])) pages=$((pages + fields[21])) processes=$((processes + 1))
  done
}

# Hundredths of a second since the boot.
uptime_of_host() { read -r uptime _ < /proc/uptime; uptime=${uptime/./}; }

hertz=$(getconf CLK_TCK 2> /dev/null || echo 100)  # musl's systems may be without, and the kernel says 100 to all
uptime_of_host
if ((${#pids[@]})); then
  measure
  before_ticks=$ticks before=$uptime
  exec 8<> <(:)  # has nothing to read: a pause that costs no process
  read -rt 0.3 -u 8
  uptime_of_host
  measure
  # A process that ended meanwhile takes its time with it.
  ((ticks >= before_ticks && uptime > before)) && answer cpu_percent $(((ticks - before_ticks) * 10000 / hertz / (uptime - before)))
  answer memory_bytes $((pages * $(getconf PAGESIZE 2> /dev/null || echo 4096)))
  answer processes "$processes"
fi

# How the session's leader is. Where no session of ours leads the job, `probe` in the state folder defines look_at_leader.
look_at_leader() {
  local pid start boot stat fields
  if read -r pid start boot 2> /dev/null < process && [[ "$pid $start" =~ ^[0-9]+\ [0-9]+$ ]]; then
    answer pid "$pid"
    if [ "$boot" != "$(< /proc/sys/kernel/random/boot_id)" ]; then
      answer rebooted "$((uptime / 100))"
    else
      stat=''
      { stat=$(< "/proc/$pid/stat"); } 2> /dev/null
      read -ra fields <<< "${stat##*) }"
      # The session may outlast its script, to supervise others'.
      if [ "${fields[19]-}" = "$start" ] && [ "${fields[0]}" != Z ] && [ ! -e exit_code ]; then
        answer up_s $((uptime / 100 - start / hertz))
      fi
    fi
  fi
}

answer host "$identity"
[ -z "$state" ] || [ -d "${state%/*}" ] || answer no_folder yes
if cd "$state" 2> /dev/null; then
  answer folder yes
  # shellcheck source=/dev/null
  # runs: what dtool wrote there.
  [ ! -e probe ] || . ./probe
  look_at_leader
  [ ! -s node ] || answer node "$(< node)"
  # kill leaves its mark on runs too that had ended before.
  if [ -e killed ] && ! { [ -e exit_code ] && [ exit_code -ot killed ]; }; then answer killed yes; fi
  for name in attempt supervision cause; do
    [ ! -s "$name" ] || answer "$name" "$(< "$name")"
  done
  [ ! -e stopped ] || answer stopped yes
  if [ -e exit_code ]; then
    answer exit_code "$(< exit_code)"
    age_of ended_s_ago exit_code
  elif [ -e killed ]; then
    age_of ended_s_ago killed
  fi
fi
if [ -n "${brief-}" ]; then
  answer looked yes
  exit 0
fi

if [ -r "$log" ]; then
  said='' lines=()
  while IFS= read -r line; do
    case $line in
      'dtool: the run failed: '* | 'mpirun: '*) continue ;;
      'dtool-trainer: '*) said=${line#*: }; continue ;;
      'dtool: rank '*) said=${line#*: } ;;
    esac
    lines+=("${line:0:1000}")
  done < <(tail -c 8192 "$log" | tr '\r\0' '\n ' | grep -a '[^[:space:]]')  # a progress bar returns its carriage
  [ -z "$said" ] || answer said "$said"
  [ ${#lines[@]} = 0 ] || answer last_line "${lines[-1]}"
  # What came before a failure, from the machine where it was.
  if [ -s exit_code ] && [ "$(< exit_code)" != 0 ] && [ ! -e stopped ]; then
    for ((i = ${#lines[@]} > 5 ? ${#lines[@]} - 5 : 0; i < ${#lines[@]}; i++)); do answer line "${lines[i]}"; done
  fi
fi
if [ -n "$output" ] && [ -r "$output/metrics.jsonl" ]; then
  # Two answers: a validation comes far more rarely than a line of training.
  newest() { tail -c 65536 "$output/$2" | grep -aE "^\\{\"event\": \"($1)\".*\\}\$" | tail -n 1; }
  metrics=$(newest 'step|epoch' metrics.jsonl)
  told=metrics.jsonl
  [ ! -s "$output/validation.jsonl" ] || told=validation.jsonl  # by a run that follows this one
  validation=$(newest validation "$told")
  [ -z "$metrics" ] || answer metrics "$metrics"
  [ -z "$validation" ] || answer validation "$validation"
  [ -z "$metrics$validation" ] || age_of metrics_s_ago "$output/metrics.jsonl"
fi
full=$(df -Pk -- "$log" "$state" 2> /dev/null | awk 'NR > 1 && $4 ~ /^[0-9]+$/ && $4 < 1024 { for (i = 0; i < 5; i++) sub(/^[^ ]+ +/, ""); print; exit }')
[ -z "$full" ] || answer full_disk "$full"
if command -v nvidia-smi > /dev/null; then
  timeout 5 nvidia-smi --query-gpu=index,utilization.gpu,memory.used,memory.total --format=csv,noheader,nounits 2> /dev/null |
    while IFS= read -r line; do answer gpu "$line"; done
fi
answer looked yes
