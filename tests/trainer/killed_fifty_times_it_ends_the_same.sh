#!/bin/bash
# SPDX-License-Identifier: MIT
# Killed with SIGKILL at 50 random moments and resumed each time, a run ends with the same bytes as one that was never
# stopped: stages, dropout, batch norm across ranks and checkpoints within an epoch.
. "$(dirname "$0")/harness.sh"
digits_experiment e.toml data.train_samples=2000 data.test_samples=100 checkpoint.every_steps=5 checkpoint.keep=2 \
  'model.layers = ["conv 4 5 stride 2", "batch_norm", "relu", "dropout 0.2", "linear 32", "relu"]' \
  'schedule.kind = "linear"' 'schedule.unit = "steps"' 'schedule.length = 2000' \
  '[[stage]]' 'steps = 333' 'batch_size = 8' 'repeats = 3' '[[stage]]' 'epochs = 6' 'batch_size = 16'
run=("$trainer" e.toml --nproc_per_node 2 --seed 3 --output_dir)
"${run[@]}" whole > whole.log 2>&1 || fail "the whole run: exit code $?"
last=$(basename "$(printf '%s\n' whole/checkpoints/step_*.safetensors | tail -n 1)")

same_end() {
  cmp "whole/checkpoints/$last" "$1/checkpoints/$last" || fail "$1 ended otherwise"
  cmp whole/checkpoints/best.safetensors "$1/checkpoints/best.safetensors" || fail "$1 has another best"
}
has_checkpoint() { compgen -G "$1/checkpoints/step_*.safetensors" > /dev/null; }
from_latest() { if has_checkpoint "$1"; then echo --checkpoint latest; fi; }

starts() { grep -c '"event": "start"' $out/metrics.jsonl 2> /dev/null || true; }
began_again() { [ "$(starts)" != "$before" ]; }

RANDOM=20
kills=0 finished=0 resumed=0
out=out0
while [ $kills -lt 50 ]; do
  if has_checkpoint $out; then resumed=$((resumed + 1)); fi
  before=$(starts)
  # shellcheck disable=SC2046
  "${run[@]}" $out $(from_latest $out) > "$out.log" 2>&1 &
  pid=$!
  started+=("$pid")
  # One in five while it starts, the others while it trains.
  if [ $((RANDOM % 5)) -gt 0 ]; then await 60 "training" began_again; fi
  sleep "0.$((RANDOM % 10))"
  if kill -KILL $pid 2> /dev/null; then kills=$((kills + 1)); fi
  await_exit $pid
  if [ $code = 0 ]; then
    same_end $out
    finished=$((finished + 1))
    out=out$finished
  elif [ $code != 137 ]; then
    fail "exit code $code"
  fi
done
# shellcheck disable=SC2046
"${run[@]}" $out $(from_latest $out) > "$out.log" 2>&1 || fail "the last one: exit code $?"
same_end $out
[ $resumed -ge 10 ] || fail "only $resumed of 50 were resumed"
