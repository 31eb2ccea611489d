#!/bin/bash
# SPDX-License-Identifier: MIT
# A learning rate far too large: all machines stop, and say in the same words when and where the loss was lost; so does a run
# of one process, and so do the ranks that another launcher started.
. "$(dirname "$0")/harness.sh"
printf '%s\n' 'workload = "regression"' 'model.hidden = []' 'data.source = "random"' 'optimizer.kind = "sgd"' \
  optimizer.learning_rate=1000 logging.every_steps=4 checkpoint.every_steps=1 > e.toml
code=0
"$trainer" e.toml --output_dir alone > alone.log 2>&1 || code=$?
[ $code = 1 ] || fail "alone: exit code $code"
pattern="^dtool-trainer: the loss is no longer a number at epoch 1, step ([0-9]+), on rank ([0-9]+) \(machine ([0-9]+), $(hostname)\)$"
# names_it LOG: and nothing was kept of the steps from there on.
names_it() {
  [[ $(tail -n 1 "$1.log") =~ $pattern ]] || fail "$1 says $(tail -n 1 "$1.log")"
  lost_at=${BASH_REMATCH[1]}
}
kept_before() {
  local checkpoint kept=("$1"/checkpoints/step_*.safetensors)
  for checkpoint in "${kept[@]}"; do
    [ $((10#$(tr -dc 0-9 <<< "${checkpoint##*/}"))) -lt "$lost_at" ] || fail "$checkpoint was written when the loss was lost at $lost_at"
  done
}
names_it alone
kept_before alone
[ "$lost_at" -gt 1 ] || fail "not at step $lost_at"

# all_name_it WHAT: the two programs in pids have ended so, and said so in WHAT0.log and WHAT1.log.
all_name_it() {
  local i
  for i in 0 1; do
    await 60 "the end of $1 $i" is_gone "${pids[i]}"
    await_exit "${pids[i]}"
    [ $code = 1 ] || fail "$1 $i: exit code $code"
    names_it "$1$i"
  done
}

listener=127.0.0.1:$(free_port)
for machine in 0 1; do
  "$trainer" e.toml --machine_id $machine --distributed_nodes 2 --nproc_per_node 2 \
    --distributed_ip_and_port "$listener" --output_dir out > machine$machine.log 2>&1 &
  pids[machine]=$!
  started+=($!)
done
all_name_it machine
[ "$(tail -n 1 machine0.log)" = "$(tail -n 1 machine1.log)" ] || fail "the machines do not agree"
kept_before out

port=$(free_port)
for rank in 0 1; do
  env RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT="$port" \
    "$trainer" e.toml --output_dir launched > rank$rank.log 2>&1 &
  pids[rank]=$!
  started+=($!)
done
all_name_it rank
