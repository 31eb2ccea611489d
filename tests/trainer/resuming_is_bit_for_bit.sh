#!/bin/bash
# SPDX-License-Identifier: MIT
# Two epochs, a stop, and two more are the same run as four epochs, on three ranks.
. "$(dirname "$0")/harness.sh"
common=(data.train_samples=2000 data.test_samples=300 logging.every_steps=3)
digits_experiment two.toml train.epochs=2 "${common[@]}"
digits_experiment four.toml train.epochs=4 "${common[@]}"
run() { "$trainer" "$@" --nproc_per_node 3 --seed 5 >> run.log 2>&1 || fail "$*: exit code $?"; }
run four.toml --output_dir whole
run two.toml --output_dir halves
run four.toml --output_dir halves --checkpoint latest
run four.toml --output_dir elsewhere --checkpoint halves/checkpoints/step_000000022.safetensors
[ "$(metric whole step loss | wc -l)" -ge 8 ] || fail "no losses"
[ "$(metric whole step loss)" = "$(metric halves step loss)" ] || fail "the losses differ"
for file in halves elsewhere; do
  cmp whole/checkpoints/step_000000044.safetensors $file/checkpoints/step_000000044.safetensors || fail "$file ended differently"
done
grep -q '"resumed_from": "halves/checkpoints/step_000000022.safetensors"' halves/metrics.jsonl || fail "no note of resuming"

# Another seed would go on within an epoch with samples that were had already. At an epoch's end it may.
digits_experiment within.toml train.epochs=4 checkpoint.every_steps=5 checkpoint.keep=20 "${common[@]}"
run within.toml --output_dir within_an_epoch
for step in 25 22; do
  code=0
  "$trainer" four.toml --output_dir "seed_$step" --nproc_per_node 3 --seed 6 --checkpoint "within_an_epoch/checkpoints/step_0000000$step.safetensors" > seed.log 2>&1 || code=$?
  if [ "$step" = 25 ]; then
    [ "$code" = 2 ] || fail "another seed within an epoch: exit code $code"
    grep -q "it was written within an epoch that seed 5 had shuffled, this run has seed 6" seed.log || fail "no reason: $(cat seed.log)"
  else
    [ "$code" = 0 ] || fail "another seed at an epoch's end: exit code $code, $(cat seed.log)"
  fi
done

# A newest checkpoint that is spoilt is named, and the one before it is taken. If none is whole, nothing begins anew.
mkdir -p spoilt/checkpoints
cp halves/checkpoints/step_000000022.safetensors spoilt/checkpoints/
touch -d '1 minute ago' spoilt/checkpoints/*
head -c 5000 halves/checkpoints/step_000000044.safetensors > spoilt/checkpoints/step_000000035.safetensors
: > spoilt/checkpoints/step_000000036.safetensors
run four.toml --output_dir spoilt --checkpoint auto
cmp whole/checkpoints/step_000000044.safetensors spoilt/checkpoints/step_000000044.safetensors || fail "past a spoilt one it ended differently"
for step in 35 36; do
  grep -q "^note: spoilt/checkpoints/step_0000000$step.safetensors is no checkpoint: .*; an older one is looked for$" run.log || fail "step $step is not named"
done
rm spoilt/checkpoints/step_000000044.safetensors
code=0
"$trainer" four.toml --output_dir spoilt --checkpoint auto --seed 5 > none.log 2>&1 || code=$?
[ "$code" = 2 ] || fail "without a whole checkpoint: exit code $code"
grep -q "spoilt/checkpoints/step_0000000.*, and no checkpoint beside it is whole" none.log || fail "no reason: $(cat none.log)"
