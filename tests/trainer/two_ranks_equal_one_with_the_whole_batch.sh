#!/bin/bash
# The average of two ranks' gradients over 32 samples each is the gradient over all 64.
. "$(dirname "$0")/harness.sh"
common=(data.train_samples=1280 data.test_samples=200 train.epochs=2)
digits_experiment two.toml train.batch_size=32 "${common[@]}"
digits_experiment one.toml train.batch_size=64 "${common[@]}"
"$trainer" two.toml --nproc_per_node 2 --output_dir two > two.log 2>&1 || fail "two ranks: exit code $?"
"$trainer" one.toml --nproc_per_node 1 --output_dir one > one.log 2>&1 || fail "one rank: exit code $?"
[ "$(metric one epoch step)" = "$(metric two epoch step)" ] || fail "not the same number of steps"
paste <(metric one epoch loss) <(metric two epoch loss) |
  awk '{ d = $1 - $2; if (d * d > 1e-8) exit 1; n++ } END { exit n != 2 }' ||
  fail "losses differ: $(metric one epoch loss) and $(metric two epoch loss)"
