#!/bin/bash
# SPDX-License-Identifier: MIT
# Three ranks of 64 samples, with the learning rate scaled, learn MNIST as well as one: 96.4 % and more.
. "$(dirname "$0")/harness.sh"
if [ -z "${DTOOL_MNIST_DIR:-}" ]; then
  echo "SKIPPED: DTOOL_MNIST_DIR does not name a folder with MNIST's four files"
  exit 77
fi
experiment=$(dirname "$0")/../../trainer/experiments/mnist.toml
[ -f "$experiment" ] || experiment=$OLDPWD/$experiment
"$trainer" "$experiment" --nproc_per_node 3 > run.log 2>&1 || fail "exit code $?"
last=$(tail -n 1 run.log)
awk -v a="${last##* }" 'BEGIN { exit !(a >= 0.964) }' || fail "$last"
