#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The same seed on the same number of ranks gives the same losses whoever starts them: ssh, mpirun or Slurm; on the real MNIST, where its
# files are (DTOOL_MNIST_DIR), else on digits.
source "$(dirname "$0")/harness.sh"
needs_isolation
[[ -x ${DTOOL_TRAINER:-} ]] || skip 'needs dtool-trainer, which was not built'
needs_program mpirun
slurm_lab 4
# mpirun's own ssh, between the hosts.
let_h1_reach_the_others
{
  echo 'workload = "classifier"'
  if [[ -n ${DTOOL_MNIST_DIR:-} ]]; then echo 'data.source = "mnist"'; else echo 'data.source = "digits"'; fi
  printf '%s\n' 'train.epochs = 1' 'logging.every_steps = 50'
} >e.toml

# trains LAUNCHER ARGUMENT...: four ranks, two on each of two machines; their losses into LAUNCHER.losses.
trains() {
  local launcher=$1
  shift
  expect_exit 0 timeout 150 "$DTOOL" run --follow --launcher "$launcher" --seed 7 --export DTOOL_MNIST_DIR "$@" e.toml
  expect_output '4 ranks on 2 machines'
  grep -o 'step [0-9]* *loss [0-9.]*\|^.*test accuracy [0-9.]*$' "$out" | sed 's/samples.s [0-9]*//; s/^machine[0-9]*\( r[0-9]*\)\?: //' >"$launcher.losses"
  [[ $(wc -l <"$launcher.losses") -ge 3 ]] || fail "$launcher told no losses"
}
export DTOOL_MNIST_DIR=${DTOOL_MNIST_DIR:-}
trains ssh --runs_on h2,h3 --nproc_per_node 2
trains mpi --runs_on h2,h3 --nproc_per_node 2
trains slurm --runs_on h1 --nodes 2 --ntasks_per_node 2
expect_equal "$(<ssh.losses)" "$(<mpi.losses)"
expect_equal "$(<ssh.losses)" "$(<slurm.losses)"
