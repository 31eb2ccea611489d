#!/bin/bash
# SPDX-License-Identifier: MIT
# Checkpoints by steps alone, each due at the last step of an epoch: all are kept, and each can be gone on from.
. "$(dirname "$0")/harness.sh"
digits_experiment e.toml data.train_samples=100 data.test_samples=50 train.batch_size=10 train.epochs=3 \
  checkpoint.every_epochs=0 checkpoint.every_steps=10
run() { "$trainer" e.toml --seed 5 "$@" >> run.log 2>&1 || fail "$*: exit code $?"; }
run --output_dir whole
for step in 10 20 30; do
  [ -e "whole/checkpoints/step_0000000$step.safetensors" ] || fail "no checkpoint of step $step"
done
run --output_dir again --checkpoint whole/checkpoints/step_000000010.safetensors
for file in step_000000020.safetensors step_000000030.safetensors; do
  cmp "whole/checkpoints/$file" "again/checkpoints/$file" || fail "$file is another after resuming"
done
