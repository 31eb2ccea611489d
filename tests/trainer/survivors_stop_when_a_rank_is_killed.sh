#!/bin/bash
# SPDX-License-Identifier: MIT
# One of four ranks on two machines is killed: its machine ends the others and names it, and the other machine ends, too.
. "$(dirname "$0")/harness.sh"
endless_experiment e.toml
listener=127.0.0.1:$(free_port)
for machine in 0 1; do
  "$trainer" e.toml --machine_id $machine --distributed_nodes 2 --nproc_per_node 2 \
    --distributed_ip_and_port "$listener" --output_dir out > machine$machine.log 2>&1 &
  started+=($!)
done
await 60 "training" is_training machine0.log
victim=$(worker_of "${started[1]}" 3)
survivors="$(children "${started[0]}") $(worker_of "${started[1]}" 2)"
kill -KILL "$victim"

await 60 "the end of machine 1" is_gone "${started[1]}"
await 60 "the end of machine 0" is_gone "${started[0]}"
await_exit "${started[0]}"
[ $code = 1 ] || fail "machine 0 did not exit with 1"
await_exit "${started[1]}"
[ $code = 1 ] || fail "machine 1 did not exit with 1"
for pid in $survivors; do is_gone "$pid" || fail "worker $pid is still there"; done
[ "$(grep dtool-trainer: machine1.log)" = \
  "dtool-trainer: rank 3 on machine 1 ($(hostname)) was killed by signal 9 (Killed)" ] || fail "machine 1 does not name rank 3"
# What its ranks find, or what the store knows of rank 3, whichever is sooner.
grep -Eq "^dtool-trainer: (rank [01] on machine 0 \\($(hostname)\\): |rank 3 on machine 1 \\($(hostname)\\) closed its connection)" machine0.log ||
  fail "machine 0 says nothing"
