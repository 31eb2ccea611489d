#!/bin/bash
# SPDX-License-Identifier: MIT
# Learning rates and step counts of a run with stages are what arithmetic says.
. "$(dirname "$0")/harness.sh"

# 640 samples on two ranks: 320 each.
digits_experiment stages.toml data.train_samples=640 data.test_samples=100 train.batch_size=32 logging.every_steps=1 \
  'optimizer.learning_rate = 0.01' 'schedule.kind = "multi_step"' 'schedule.milestones = [1, 2]' 'schedule.gamma = 0.5' \
  '[[stage]]' 'epochs = 1' 'accumulate = 2' \
  '[[stage]]' 'steps = 7' 'batch_size = 80' 'repeats = 2' 'learning_rate = 0.04' \
  '[[stage]]' 'epochs = 1' 'batch_size = 160'
"$trainer" stages.toml --nproc_per_node 2 --output_dir out > run.log 2>&1 || fail "exit code $?"
# Stage 1: 10 batches, two a step: 5 steps. Stage 2: steps in pairs, 4 pairs an epoch of 80: 7 steps are 4 pairs, the
# last cut short, which ends epoch 2. Stage 3: epoch 3 in two steps of 160.
expected="0.01 0.01 0.01 0.01 0.01 0.02 0.02 0.02 0.02 0.02 0.02 0.02 0.0025 0.0025"
# Pairs are logged once each, at their end.
logged=$(metric out step learning_rate | tr '\n' ' ')
[ "$(metric out step step | tail -n 1)" = 14 ] || fail "steps: $(metric out step step | tr '\n' ' ')"
[ "$(metric out epoch step | tr '\n' ' ')" = "5 12 14 " ] || fail "epochs end at $(metric out epoch step | tr '\n' ' ')"
for rate in $logged; do [[ " $expected " == *" $rate "* ]] || fail "a learning rate of $rate: $logged"; done
grep -q '^stage 2 of 3: ' run.log || fail "no word of stage 2"

# Half an epoch of warm-up, then a cosine to 0: 10 steps an epoch.
digits_experiment cosine.toml data.train_samples=320 data.test_samples=100 train.batch_size=32 train.epochs=2 \
  logging.every_steps=1 'optimizer.learning_rate = 0.01' 'optimizer.scale_learning_rate = "linear"' \
  'schedule.kind = "cosine"' 'schedule.warm_up = 0.5'
"$trainer" cosine.toml --output_dir cosine > cosine.log 2>&1 || fail "cosine: exit code $?"
metric cosine step learning_rate | awk '
  { t = (NR - 1) / 10; pi = atan2(0, -1)
    f = t < 0.5 ? t / 0.5 : 0.5 * (1 + cos(pi * (t - 0.5) / 1.5))
    d = $1 - 0.01 * f; if (d * d > 1e-18) { print NR, $1, 0.01 * f; exit 1 } } END { exit NR != 20 }' ||
  fail "cosine: $(metric cosine step learning_rate | tr '\n' ' ')"
