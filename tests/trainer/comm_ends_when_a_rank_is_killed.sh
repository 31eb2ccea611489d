#!/bin/bash
# SPDX-License-Identifier: MIT
# dtool-trainer comm stops on every machine when a rank is killed or stops answering, whatever carried its messages.
. "$(dirname "$0")/harness.sh"
for way in library ring; do
  listener=127.0.0.1:$(free_port)
  for machine in 0 1; do
    "$trainer" comm --machine_id $machine --distributed_nodes 2 --nproc_per_node 2 --distributed_ip_and_port "$listener" \
      --operations all_reduce --algorithms $way --sizes 160k --repeats 1000000 > $way$machine.log 2>&1 &
    pids[machine]=$!
    started+=($!)
  done
  await 60 "the workers" has_children "${pids[1]}" 2
  await 60 "the table" grep -q '^operation' ${way}0.log
  kill -KILL "$(worker_of "${pids[1]}" 3)"
  for machine in 0 1; do
    await 60 "the end of machine $machine" is_gone "${pids[machine]}"
    await_exit "${pids[machine]}"
    [ $code = 1 ] || fail "$way: machine $machine: exit code $code"
  done
  grep -q 'rank 3 on machine 1 .* was killed by signal 9' ${way}1.log || fail "$way: machine 1 does not name rank 3"
done
