#!/bin/bash
# A machine that is cut off closes no connection: after the collective timeout the others stop and name it.
. "$(dirname "$0")/harness.sh"
endless_experiment e.toml distributed.collective_timeout_seconds=3
listener=127.0.0.1:$(free_port)
for machine in 0 1; do
  "$trainer" e.toml --machine_id $machine --distributed_nodes 2 --distributed_ip_and_port "$listener" \
    --output_dir out > machine$machine.log 2>&1 &
  started+=($!)
done
await 60 "training" is_training machine0.log
kill -STOP "$(worker_of "${started[1]}" 1)"
await 60 "the end of machine 0" is_gone "${started[0]}"
await_exit "${started[0]}"
[ $code = 1 ] || fail "machine 0 did not exit with 1"
grep -q 'no sign of life from rank 1 on machine 1' machine0.log || fail "machine 0 does not name rank 1"
