#!/bin/bash
# SPDX-License-Identifier: MIT
# Products in bfloat16, with 8 bits, end near what float32 ends at: losses within 3 %, accuracies within 0.02. The
# parameters stay float32, so checkpoints are as large.
. "$(dirname "$0")/harness.sh"
for precision in float32 bfloat16; do
  digits_experiment $precision.toml data.train_samples=6400 data.test_samples=1000 train.epochs=3 "train.precision=\"$precision\""
  "$trainer" $precision.toml --nproc_per_node 2 --output_dir $precision > $precision.log 2>&1 ||
    fail "$precision: exit code $?"
done
losses=$(paste <(metric float32 epoch loss) <(metric bfloat16 epoch loss))
[ "$(metric float32 epoch loss)" != "$(metric bfloat16 epoch loss)" ] || fail "bfloat16 changes nothing: $losses"
awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 0.03 * $1) exit 1; n++ } END { exit n != 3 }' <<< "$losses" ||
  fail "losses differ: $losses"
paste <(tail -n 1 float32.log) <(tail -n 1 bfloat16.log) |
  awk '{ d = $3 - $6; exit !($3 > 0.8 && d < 0.02 && d > -0.02) }' ||
  fail "accuracies: $(tail -qn 1 float32.log bfloat16.log | xargs)"
sizes=$(stat -c %s float32/checkpoints/best.safetensors bfloat16/checkpoints/best.safetensors | sort -u | wc -l)
[ "$sizes" = 1 ] || fail "checkpoints of other sizes: $(stat -c %s ./*/checkpoints/best.safetensors | xargs)"

# Batch norm over the ranks computes its statistics in float32 and answers in bfloat16.
digits_experiment norm.toml data.train_samples=6400 data.test_samples=1000 train.epochs=3 'train.precision="bfloat16"' \
  'model.layers=["linear 50", "batch_norm", "relu"]'
"$trainer" norm.toml --nproc_per_node 2 --output_dir norm > norm.log 2>&1 || fail "with batch norm: exit code $?"
awk '{ exit !($3 > 0.8) }' <<< "$(tail -n 1 norm.log)" || fail "with batch norm: $(tail -n 1 norm.log)"
