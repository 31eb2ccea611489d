#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Training that is killed in the middle of an epoch has written a checkpoint first, under every launcher, and `run --resume` goes on from it.
source "$(dirname "$0")/harness.sh"
needs_isolation
[[ -x ${DTOOL_TRAINER:-} ]] || skip 'needs dtool-trainer, which was not built'
needs_program mpirun
slurm_lab 3
# mpirun's own ssh, between the hosts.
let_h1_reach_the_others
printf '%s\n' 'workload = "classifier"' 'data.source = "digits"' 'data.train_samples = 60000' 'data.test_samples = 100' 'train.batch_size = 2' \
  'train.epochs = 1000' 'logging.every_steps = 50' >e.toml

# killed LAUNCHER ARGUMENT...: two ranks' training is killed in its first epoch, of 15000 steps.
killed() {
  local log step run
  expect_exit 0 timeout 100 "$DTOOL" run --launcher "$1" "${@:2}" --json e.toml
  log=$(json 'd["machines"][0]["log"]') run=$(json 'd["run_id"]')
  log=$DTOOL_LAB_FOLDER/host1${log/#\~//root}
  eventually 60 grep -q samples/s "$log"
  expect_exit 0 timeout 60 "$DTOOL" kill --yes --delete
  step=$(sed -n 's/^checkpoint written: step \([0-9]*\), since SIGTERM came$/\1/p' "$log")
  [[ -n $step && $((step % 15000)) != 0 ]] || fail "no checkpoint within an epoch: $(tail -n 3 "$log")"
  expect_file "$(dirname "$log")/checkpoints/$(printf 'step_%09d.safetensors' "$step")"
  expect_exit 0 timeout 100 "$DTOOL" run --json --resume "$run"
  expect_equal "$1 2 ['$run']" "$(json '"%s %d %s" % (d["launcher"], d["world_size"], d["chain"])')"
  log=$(dirname "$log")/machine0.$(json 'd["run_id"]').log
  eventually 60 grep -q "^resumed from .*/checkpoints/$(printf 'step_%09d.safetensors' "$step") at .*step $step\$" "$log"
  expect_exit 0 timeout 60 "$DTOOL" kill --yes --delete
}
killed mpi --runs_on h2,h3
killed slurm --runs_on h1 --nodes 2
killed ssh --runs_on h2,h3
