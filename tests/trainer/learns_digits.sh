#!/bin/bash
# SPDX-License-Identifier: MIT
# The shipped digits experiment learns, and leaves its metrics and checkpoints behind.
. "$(dirname "$0")/harness.sh"
experiment=$(dirname "$0")/../../trainer/experiments/digits.toml
[ -f "$experiment" ] || experiment=$OLDPWD/$experiment
for ranks in 1 3; do
  "$trainer" "$experiment" --nproc_per_node $ranks --output_dir "out$ranks" > "run$ranks.log" 2>&1 ||
    fail "$ranks ranks: exit code $?"
  epoch_steps=$(((20000 / ranks + 63) / 64))
  last=$(tail -n 1 "run$ranks.log")
  [[ $last =~ ^test\ accuracy\ 0\.[0-9]{4}$ ]] || fail "the last line is '$last'"
  awk -v a="${last##* }" 'BEGIN { exit !(a >= 0.95 && a < 1) }' || fail "$ranks ranks: $last"
  [ "$(metric out$ranks epoch epoch | tail -n 1)" = 5 ] || fail "no fifth epoch in metrics.jsonl"
  for key in step loss learning_rate samples_per_s test_accuracy; do
    [ "$(metric out$ranks epoch $key | wc -l)" = 5 ] || fail "metrics.jsonl lacks $key"
  done
  [ "$(ls out$ranks/checkpoints)" = "$(printf '%s\n' best.safetensors; printf 'step_%09d.safetensors\n' $((epoch_steps * 3)) $((epoch_steps * 4)) $((epoch_steps * 5)))" ] ||
    fail "checkpoints: $(ls out$ranks/checkpoints)"
done
