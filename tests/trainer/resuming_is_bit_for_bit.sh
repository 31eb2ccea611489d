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
