#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `rerun` repeats jobs of Slurm without the folder of their code: one of several nodes, and one for each of several seeds, or for another seed.
source "$(dirname "$0")/harness.sh"
slurm_lab 3
start() {  # $1: what the program says; flags
  mkdir code
  cd code
  echo "echo \"$1, rank \$RANK of \$WORLD_SIZE, seed \$DTOOL_SEED\"" >program.sh
  expect_exit 0 dtool run --json --launcher slurm --runs_on h1 "${@:2}" --follow -- bash program.sh
  run=$(json 'd["run_id"]')
  cd ..
  rm -r code
}
start 'code of then' --nodes 2 --seed 4
expect_exit 0 dtool rerun "$run" --follow
for rank in 0 1; do expect_output "^machine$rank: code of then, rank $rank of 2, seed 4\$"; done
start 'seeds of then' --seeds 3,5
expect_exit 0 dtool rerun "$run" --follow
for seed in 3 5; do expect_output "seeds of then, rank 0 of 1, seed $seed\$"; done
expect_exit 0 dtool rerun "$run" --seed 9 --follow
expect_output '^machine0: seeds of then, rank 0 of 1, seed 9$'
expect_no_output 'seed [35]$'
