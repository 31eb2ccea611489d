#!/bin/bash
# SPDX-License-Identifier: MIT
# Same seed, same number of ranks: every loss to the last digit. Another seed: other losses.
. "$(dirname "$0")/harness.sh"
digits_experiment e.toml data.train_samples=3000 data.test_samples=300 train.epochs=2 logging.every_steps=5
for run in a b; do
  "$trainer" e.toml --nproc_per_node 3 --seed 7 --output_dir $run > $run.log 2>&1 || fail "run $run: exit code $?"
done
"$trainer" e.toml --nproc-per-node=3 --seed 8 --output-dir c > c.log 2>&1 || fail "run c: exit code $?"
[ "$(metric a step loss | wc -l)" -ge 4 ] || fail "no losses"
[ "$(metric a step loss)" = "$(metric b step loss)" ] || fail "the same seed gave other losses"
[ "$(metric a step loss)" != "$(metric c step loss)" ] || fail "another seed gave the same losses"
