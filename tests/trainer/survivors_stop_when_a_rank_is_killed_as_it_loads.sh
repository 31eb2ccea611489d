#!/bin/bash
# SPDX-License-Identifier: MIT
# One of two machines waits for data when its rank is killed, with all that started it: the other machine, which has the data,
# waits for it no longer and names it.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/harness.sh"
. "$here/data_server.sh"
image_experiment here.toml served "\"$server/good\""
image_experiment away.toml away "\"$server/held\""
listener=127.0.0.1:$(free_port)
machine=0
for experiment in here.toml away.toml; do
  "$trainer" $experiment --machine_id $machine --distributed_nodes 2 --distributed_ip_and_port "$listener" \
    --output_dir out > machine$machine.log 2>&1 &
  pids[machine]=$!
  started+=($!)
  ((machine += 1))
done
await 60 "a download" grep -q /held/ requests
await 60 "the other machine's settings" grep -q '^dtool-trainer .* 2 ranks' machine0.log
kill -KILL "$(worker_of "${pids[1]}" 1)" "${pids[1]}"
await 20 "the end of machine 0" is_gone "${pids[0]}"
await_exit "${pids[0]}"
[ $code = 1 ] || fail "machine 0 did not exit with 1"
grep -q "^dtool-trainer: .*rank 1 on machine 1 ($(hostname)) closed its connection" machine0.log || fail "machine 0 does not name rank 1"
