#!/bin/bash
# SPDX-License-Identifier: MIT
# dtool-trainer comm checks every operation on every size, tells of all in a table, in JSON and in files; spoilt data
# is counted, named, and ends with exit code 1.
. "$(dirname "$0")/harness.sh"
spoiler=$(dirname "$trainer")/libspoil_received.so
quick=(--repeats 2 --iterations 2 --sizes "4,4k,160k")

"$trainer" comm --nproc_per_node 2 "${quick[@]}" --output_dir out > table.log 2> err.log || fail "exit code $?"
grep -q '2 ranks on 1 machine' table.log || fail "it does not say how many ranks there are"
grep -q '^links: shared memory$' table.log || fail "two ranks of a machine do not share memory"
for row in 'send_recv *library' 'send_recv *links' 'isend_irecv *library' 'broadcast *library' 'reduce *library' \
  'all_reduce *library' 'all_reduce *ring' 'all_reduce *pairwise' 'all_reduce *halving_doubling' 'all_reduce *doubling' \
  'gather *library' 'all_gather *library' 'scatter *library'; do
  [ "$(grep -cE "^$row .* 0\$" table.log)" = 3 ] || fail "not three right rows of $row"
done
grep -q '^barrier .* 0$' table.log || fail "no barrier"
[ "$(wc -l < out/comm.jsonl)" = 43 ] || fail "comm.jsonl has not a line for each row"
grep -q 'dtool plot --file out/comm.jsonl' err.log || fail "it does not say how to draw"
dtool=$(dirname "$trainer")/dtool
"$dtool" plot --file out/comm.jsonl --output comm.svg > plot.log 2>&1 || fail "dtool plot: exit code $?"
for words in 'halving_doubling' 'all_reduce_us' 'send_recv_gb_per_s' 'bytes'; do
  grep -q "$words" comm.svg || fail "the picture does not say $words"
done

"$trainer" comm --nproc_per_node 3 "${quick[@]}" --operations all_reduce --algorithms ring,library --json > json.log ||
  fail "--json: exit code $?"
python3 -c '
import json
document = json.load(open("json.log"))
assert document["world_size"] == 3 and document["machines"] == 1, document
assert [row["bytes"] for row in document["rows"]] == [4, 4096, 163840] * 2, document
assert all(row["wrong"] == 0 and row["median_seconds"] > 0 for row in document["rows"]), document
' || fail "the JSON is not what it should be"

# Two machines' ranks, so that everything goes through sockets, and a socket that spoils it.
listener=127.0.0.1:$(free_port)
for machine in 0 1; do
  LD_PRELOAD=$spoiler "$trainer" comm --machine_id $machine --distributed_nodes 2 --nproc_per_node 1 \
    --distributed_ip_and_port "$listener" "${quick[@]}" --operations send_recv,all_reduce --sizes 4,160k \
    > spoilt$machine.log 2>&1 &
  pids[machine]=$!
  started+=($!)
done
for machine in 0 1; do
  await_exit "${pids[machine]}"
  [ $code = 1 ] || fail "spoilt data: machine $machine: exit code $code"
  grep -q "dtool-trainer: .*rows have wrong numbers" spoilt$machine.log ||
    fail "machine $machine does not say that numbers were wrong"
done
grep -q '^links: TCP$' spoilt0.log || fail "two machines share memory"
for row in 'send_recv *library' 'send_recv *links' 'all_reduce *library' 'all_reduce *ring' 'all_reduce *doubling'; do
  grep -qE "^$row .* 4 .* 0\$" spoilt0.log || fail "$row: small messages, which are left alone, are wrong"
  grep -qE "^$row .* 163840 .* [1-9][0-9]*\$" spoilt0.log || fail "$row: spoilt data are not counted"
done
