#!/bin/bash
# SPDX-License-Identifier: MIT
# A checkpoint is written from one copy of the state, and read in parts: neither way the file is in memory as a whole.
. "$(dirname "$0")/harness.sh"
# 8 million parameters: with Adam's averages the state has 96 MB.
experiment() {
  printf '%s\n' 'workload = "regression"' 'model.hidden = [8000]' 'data.source = "random"' 'data.features = 1000' data.train_samples=64 \
    checkpoint.best=false "${@:2}" > "$1"
}
# The most memory that a process of the run has taken, in MB.
peak() {
  python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[2:], check=True, stdout=open(sys.argv[1], "w"), stderr=subprocess.STDOUT)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1000)' "$1.log" "$trainer" "${@:2}" || fail "$1"
}
experiment none.toml train.epochs=2 checkpoint.every_epochs=0
experiment one.toml train.epochs=1
without=$(peak none none.toml --output_dir none)
writing=$(peak one one.toml --output_dir one)
[ "$(stat -c %s one/checkpoints/step_*)" -gt 96000000 ] || fail "the state is small"
reading=$(peak resumed none.toml --output_dir resumed --checkpoint one/checkpoints/step_000000001.safetensors)
grep -q '^resumed from one/' resumed.log || fail "not resumed"
echo "$without MB, with a copy to write $writing MB, resumed $reading MB"
[ "$writing" -le $((without + 96 + 40)) ] || fail "writing takes $writing MB, a run without takes $without MB"
[ "$reading" -le $((without + 40)) ] || fail "reading takes $reading MB, a run without takes $without MB"
