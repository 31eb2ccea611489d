#!/bin/bash
# SPDX-License-Identifier: MIT
# Whoever speaks to a port of a run and is not of it, while the ranks meet and while they train, with noise, lies, much, little or
# nothing, on hundreds of connections: the run ends well, with the same numbers; nobody is answered; and no port is open at
# other addresses than the one that was given. With a token, and without one.
strangers=$(dirname "$(readlink -f "$0")")/strangers.py
. "$(dirname "$0")/harness.sh"
command -v ss > /dev/null || { echo "needs ss (iproute2)" >&2; [ -z "${CI:-}" ] || exit 1; exit 77; }
digits_experiment e.toml data.train_samples=1200 data.test_samples=200 train.epochs=200 checkpoint.every_epochs=0 \
  checkpoint.best=false distributed.all_reduce=\"ring\"
ulimit -n 4096 2> /dev/null || true

start() {  # $1: machine, $2: output folder
  "$trainer" e.toml --machine_id "$1" --distributed_nodes 2 --nproc_per_node 2 --distributed_ip_and_port "$listener" \
    --output_dir "$2" > "$2.$1.log" 2>&1 &
  pids[$1]=$!
  started+=($!)
}
ended_well() {  # $1: output folder
  local machine
  for machine in 0 1; do
    await_exit "${pids[machine]}"
    [ $code = 0 ] || fail "$1: machine $machine exits with $code"
  done
}

# The ports of these processes and their workers, as ADDRESS:PORT.
ports_of() {
  local pid parent
  for pid in "$@" $(for parent in "$@"; do children "$parent"; done); do
    ss -ltnpH | awk -v who="pid=$pid," 'index($0, who) { print $4 }'
  done
}
has_ports() { [ "$(ports_of "${@:2}" | wc -l)" -ge "$1" ]; }

# strangers_come NAME PID...: to all ports of these.
strangers_come() {
  local ports wrong
  # shellcheck disable=SC2207
  ports=($(ports_of "${@:2}"))
  wrong=$(printf '%s\n' "${ports[@]}" | grep -v '^127\.0\.0\.1:' || true)
  [ -z "$wrong" ] || fail "$1: there are ports at $wrong"
  mkfifo "$1.held"
  python3 "$strangers" "${ports[@]}" < "$1.held" > "$1.strangers.log" 2>&1 &
  started+=($!)
  # shellcheck disable=SC2034
  exec {held}> "$1.held"  # they stay until this test ends
  await 60 "the strangers" grep -q '^done$' "$1.strangers.log"
}
nobody_was_answered() { [ "$(cat "$@")" = "$(printf 'done\n%.0s' "$@")" ] || fail "strangers: $(cat "$@")"; }

# A run that nobody disturbs.
unset DTOOL_TOKEN_FILE
listener=127.0.0.1:$(free_port)
start 0 quiet; start 1 quiet
ended_well quiet
metric quiet epoch loss > quiet.losses
[ "$(wc -l < quiet.losses)" = 200 ] || fail "no losses"

for with in token nothing; do
  unset DTOOL_TOKEN_FILE
  if [ $with = token ]; then
    (umask 077; echo 0123456789abcdef0123456789abcdef > secret)
    export DTOOL_TOKEN_FILE=$work/secret
  fi
  listener=127.0.0.1:$(free_port)
  start 0 "$with"
  await 60 "the port of rank 0" has_ports 1 "${pids[0]}"
  strangers_come "$with.meeting" "${pids[0]}"
  start 1 "$with"
  await 60 "training" is_training "$with.0.log"
  strangers_come "$with.training" "${pids[@]}"
  is_gone "${pids[0]}" && fail "$with: the run was over before the strangers came"
  ended_well "$with"
  metric "$with" epoch loss | diff quiet.losses - || fail "$with: other numbers"
  nobody_was_answered "$with.meeting.strangers.log" "$with.training.strangers.log"
done
