#!/bin/bash
# SPDX-License-Identifier: MIT
# torchrun's, srun's and mpirun's variables make the process a worker of their run.
. "$(dirname "$0")/harness.sh"
digits_experiment e.toml data.train_samples=1000 data.test_samples=200 train.epochs=1
torchrun() { echo "RANK=$1" WORLD_SIZE=2 "LOCAL_RANK=$1" LOCAL_WORLD_SIZE=2; }
srun() { echo "SLURM_PROCID=$1" SLURM_NTASKS=2 "SLURM_LOCALID=$1" SLURM_NODEID=0; }
mpirun() {
  echo "OMPI_COMM_WORLD_RANK=$1" OMPI_COMM_WORLD_SIZE=2 "OMPI_COMM_WORLD_LOCAL_RANK=$1" \
    OMPI_COMM_WORLD_LOCAL_SIZE=2
}
for launcher in torchrun srun mpirun; do
  port=$(free_port)
  for rank in 0 1; do
    # shellcheck disable=SC2046
    env $($launcher $rank) MASTER_ADDR=localhost MASTER_PORT="$port" \
      "$trainer" e.toml --output_dir $launcher > $launcher$rank.log 2>&1 &
    pids[rank]=$!
    started+=($!)
  done
  for rank in 0 1; do
    await_exit "${pids[rank]}"
    [ $code = 0 ] || fail "$launcher: rank $rank: exit code $code"
  done
  grep -q ': 2 ranks on 1 machine' ${launcher}0.log || fail "$launcher: not two ranks"
  grep -q '^test accuracy' ${launcher}0.log || fail "$launcher: rank 0 tells no accuracy"
  [ ! -s ${launcher}1.log ] || fail "$launcher: rank 1 talks"
done

# A task alone needs no address.
env -u MASTER_ADDR -u MASTER_PORT SLURM_PROCID=0 SLURM_NTASKS=1 "$trainer" e.toml --output_dir alone > alone.log 2>&1 ||
  fail "one task: exit code $?"
