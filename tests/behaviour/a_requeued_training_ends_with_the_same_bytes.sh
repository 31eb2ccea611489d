#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A training that Slurm puts back into the queue in the middle of an epoch writes a checkpoint, goes on from it in its next turn, and ends with
# the bytes of one that ran over SSH and was never stopped.
source "$(dirname "$0")/harness.sh"
needs_isolation
[[ -x ${DTOOL_TRAINER:-} ]] || skip 'needs dtool-trainer, which was not built'
slurm_lab 3
printf '%s\n' 'workload = "classifier"' 'data.source = "digits"' 'data.train_samples = 40000' 'data.test_samples = 100' 'train.batch_size = 4' \
  'train.epochs = 2' 'checkpoint.every_epochs = 2' 'logging.every_steps = 50' >e.toml
last=step_000010000.safetensors

expect_exit 0 timeout 150 "$DTOOL" run --json --runs_on h2,h3 --seed 3 e.toml
whole=$DTOOL_LAB_FOLDER/host1$(json 'd["machines"][0]["output_folder"].replace("~", "/root")')
eventually 120 test -e "$whole/checkpoints/$last"

expect_exit 0 timeout 100 "$DTOOL" run --json --launcher slurm --runs_on h1 --nodes 2 --seed 3 e.toml
folder=$DTOOL_LAB_FOLDER/host1$(json 'd["machines"][0]["output_folder"].replace("~", "/root")')
run=$(json 'd["run_id"]')
job=$(json 'd["job"]')
eventually 60 grep -q 'samples/s' "$folder/machine0.log"
expect_exit 0 scontrol requeue "$job"
eventually 120 test -e "$folder/checkpoints/$last"
step=$(sed -n 's/^checkpoint written: step \([0-9]*\), since SIGTERM came$/\1/p' "$folder/machine0.log")
[[ -n $step && $((step % 5000)) != 0 ]] || fail "no checkpoint within an epoch: $(<"$folder/machine0.log")"
grep -q "^resumed from .*/$(printf 'step_%09d.safetensors' "$step")" "$folder/machine0.log" || fail "not resumed from step $step: $(<"$folder/machine0.log")"
cmp "$whole/checkpoints/$last" "$folder/checkpoints/$last" || fail 'it ended otherwise'

# A job of its own goes on from it, for one more epoch, in the same folder.
ended() { dtool status "$run" --json | grep -Eq '"state": ?"ended"'; }
eventually 60 ended
expect_exit 0 timeout 100 "$DTOOL" run --json --resume "$run" --config_kwargs '{"train":{"epochs":3}}'
later=$(json 'd["run_id"]')
expect_equal "['$run'] slurm" "$(json '"%s %s" % (d["chain"], d["launcher"])')"
eventually 120 test -e "$folder/checkpoints/step_000015000.safetensors"
grep -q "^resumed from .*/$last" "$folder/machine0.$later.log" || fail "not resumed: $(<"$folder/machine0.$later.log")"
