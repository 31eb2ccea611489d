#!/bin/bash
# SPDX-License-Identifier: MIT
# Rank 0 holds the run's store; its end is noticed all the same.
. "$(dirname "$0")/harness.sh"
endless_experiment e.toml
listener=127.0.0.1:$(free_port)
for machine in 0 1; do
  "$trainer" e.toml --machine_id $machine --distributed_nodes 2 --distributed_ip_and_port "$listener" \
    --output_dir out > machine$machine.log 2>&1 &
  started+=($!)
done
await 60 "training" is_training machine0.log
kill -KILL "$(worker_of "${started[0]}" 0)"
await 60 "the end of machine 1" is_gone "${started[1]}"
await_exit "${started[0]}"
[ $code = 1 ] || fail "machine 0 did not exit with 1"
await_exit "${started[1]}"
[ $code = 1 ] || fail "machine 1 did not exit with 1"
[ "$(tail -n 1 machine0.log)" = "dtool-trainer: rank 0 on machine 0 ($(hostname)) was killed by signal 9 (Killed)" ] ||
  fail "machine 0 does not name rank 0"
tail -n 1 machine1.log | grep -Eq "^dtool-trainer: (rank 1 on machine 1 .*: |lost rank 0 on machine 0 )" ||
  fail "machine 1 does not say what it lost"
