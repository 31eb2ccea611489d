#!/bin/bash
# SPDX-License-Identifier: MIT
# What is missing is downloaded by one process of a machine while its others wait, whoever started them, also by two
# runs at once; and what is there is not asked for again.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/harness.sh"
. "$here/data_server.sh"

once_each() {
  local name
  for name in "${names[@]}"; do
    [ "$(requests_of "$name")" = 1 ] || fail "$1: $name was asked for $(requests_of "$name") times: $(cat requests)"
  done
}

# Three ranks of a supervisor. An exchange between ranks may take one second here, the download takes several.
image_experiment e.toml data "\"$server/slow\"" distributed.collective_timeout_seconds=2
"$trainer" e.toml --nproc_per_node 3 --output_dir out > run.log 2>&1 || fail "exit code $?"
once_each 'three ranks'
same_as_served data
grep -q "^train-images: 3.1 MB from $server/slow/train-images in " run.log || fail "it does not say what it downloaded"

# Again: everything is there.
"$trainer" e.toml --nproc_per_node 2 --output_dir out > again.log 2>&1 || fail "again: exit code $?"
once_each 'again'

# Three ranks that another launcher started, each for itself.
: > requests
image_experiment e.toml elsewhere "\"$server/slow\""
port=$(free_port)
for rank in 0 1 2; do
  RANK=$rank WORLD_SIZE=3 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
    "$trainer" e.toml --output_dir out > rank$rank.log 2>&1 &
  pids[rank]=$!
  started+=($!)
done
for rank in 0 1 2; do
  await_exit "${pids[rank]}"
  [ $code = 0 ] || fail "rank $rank: exit code $code"
done
once_each 'another launcher'
same_as_served elsewhere

# Two runs at once: the second says whom it waits for, once.
: > requests
image_experiment e.toml together "\"$server/held\""
for run in 0 1; do
  "$trainer" e.toml --nproc_per_node 2 --output_dir out$run > two$run.log 2>&1 &
  pids[run]=$!
  started+=($!)
done
says_that_it_waits() { cat two?.log | grep -q "^waiting for process [0-9]* on "; }
await 50 "a run that says that it waits" says_that_it_waits
touch go
for run in 0 1; do
  await_exit "${pids[run]}"
  [ $code = 0 ] || fail "run $run of two: exit code $code"
done
once_each 'two runs'
same_as_served together
[ "$(cat two?.log | grep -c "^waiting for process [0-9]* on .*, which fills 'together'")" -le 2 ] || fail "waiting is told more than once a run"
[ "$(cat two?.log | grep -c '^train-images: 3.1 MB from')" = 1 ] || fail "both runs say that they downloaded"
