#!/bin/bash
# SPDX-License-Identifier: MIT
# The rendezvous ends after its timeout and says whom it waited for.
. "$(dirname "$0")/harness.sh"
digits_experiment e.toml
listener=127.0.0.1:$(free_port)
for machine in 0 2; do
  "$trainer" e.toml --machine_id $machine --distributed_nodes 4 --nproc_per_node 2 --distributed_ip_and_port "$listener" \
    --rendezvous_timeout 5 > machine$machine.log 2>&1 &
  pids[machine]=$!
  started+=($!)
done
for machine in 0 2; do
  await_exit "${pids[machine]}"
  [ $code = 1 ] || fail "machine $machine: exit code $code"
  [ "$(tail -n 1 machine$machine.log)" = \
    'dtool-trainer: no word within 5 s from machine 1 (rank 2, 3), machine 3 (rank 6, 7)' ] ||
    fail "machine $machine does not name machines 1 and 3"
done

code=0
"$trainer" e.toml --machine_id 1 --distributed_nodes 2 --distributed_ip_and_port "$listener" \
  --rendezvous-timeout 2 > machine1.log 2>&1 || code=$?
[ $code = 1 ] || fail "machine 1: exit code $code"
grep -q "^dtool-trainer: rank 0 on machine 0 does not listen on $listener (waited 2 s)" machine1.log ||
  fail "machine 1 does not name machine 0"
