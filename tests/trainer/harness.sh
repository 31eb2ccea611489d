# SPDX-License-Identifier: MIT
# Sourced by every test here: $trainer is the program under test, $work an empty folder that goes at the
# end, and a test ends with a sentence on stderr where it fails.
# shellcheck shell=bash disable=SC2034
set -euo pipefail
trainer=${1:-${DTOOL_TRAINER:?give the trainer\'s path as argument or in DTOOL_TRAINER}}
work=$(mktemp -d)
started=()
clean_up() {
  for pid in "${started[@]}"; do
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  rm -rf "$work"
}
trap clean_up EXIT
trap 'echo "FAILED: line $LINENO: $BASH_COMMAND" >&2' ERR
cd "$work"

fail() {
  echo "FAILED: $*" >&2
  for file in "$work"/*.log; do
    [ -f "$file" ] && { echo "--- $file" >&2; tail -n 20 "$file" >&2; }
  done
  exit 1
}

# digits_experiment FILE [TOML line]...: a small experiment; each line is `table.key = value`.
digits_experiment() {
  local file=$1
  shift
  {
    echo 'workload = "classifier"'
    echo 'data.source = "digits"'
    printf '%s\n' "$@"
  } > "$file"
}

# An experiment that would go on for long.
endless_experiment() { digits_experiment "$1" train.epochs=1000000 checkpoint.every_epochs=0 "${@:2}"; }

# await SECONDS WHAT COMMAND...: tries the command until it succeeds.
await() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    [ $SECONDS -lt $deadline ] || fail "not in time: $what"
    sleep 0.1
  done
}

children() { cat "/proc/$1/task/$1/children" 2> /dev/null; }
has_children() { [ "$(children "$1" | wc -w)" -eq "$2" ]; }
is_gone() { ! kill -0 "$1" 2>/dev/null; }
# A process whose parent is gone may wait for another to take notice of its end.
has_ended() { is_gone "$1" || grep -q '^State:.Z' "/proc/$1/status" 2> /dev/null; }
is_training() { grep -q samples/s "$1"; }

# The process id of a supervisor's worker with this rank.
worker_of() {
  local pid deadline=$((SECONDS + 20))
  while [ $SECONDS -lt $deadline ]; do  # one that was just forked has its parent's environment still
    for pid in $(children "$1"); do
      if grep -zaqxF "RANK=$2" "/proc/$pid/environ" 2> /dev/null; then echo "$pid"; return; fi
    done
    sleep 0.1
  done
  fail "process $1 has no worker of rank $2"
}

# await_exit PID: waits for a background job and leaves its exit code in $code. (Not for $(...): a subshell
# cannot wait for its parent's jobs.)
await_exit() {
  code=0
  wait "$1" || code=$?
}

# The values of one key, one a line, of the lines of one event.
metric() { grep "\"event\": \"$2\"" "$1/metrics.jsonl" | sed -n "s/.*\"$3\": \([^,}]*\).*/\1/p"; }

free_port() {
  local port
  while :; do
    port=$((20000 + RANDOM % 12000))
    (exec 3<> "/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
}
