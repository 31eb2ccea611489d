#!/bin/bash
# The rendezvous ends after its timeout and says whom it waited for.
. "$(dirname "$0")/harness.sh"
digits_experiment e.toml
listener=127.0.0.1:$(free_port)
code=0
"$trainer" e.toml --machine_id 0 --distributed_nodes 3 --nproc_per_node 2 --distributed_ip_and_port "$listener" \
  --rendezvous_timeout 3 > machine0.log 2>&1 || code=$?
[ $code = 1 ] || fail "machine 0: exit code $code"
grep -q 'no word within 3 s from machine 1 (rank 2, 3), machine 2 (rank 4, 5)' machine0.log ||
  fail "machine 0 does not name machines 1 and 2"

code=0
"$trainer" e.toml --machine_id 1 --distributed_nodes 2 --distributed_ip_and_port "$listener" \
  --rendezvous-timeout 2 > machine1.log 2>&1 || code=$?
[ $code = 1 ] || fail "machine 1: exit code $code"
grep -q "rank 0 on machine 0 does not listen on $listener (waited 2 s)" machine1.log ||
  fail "machine 1 does not name machine 0"
