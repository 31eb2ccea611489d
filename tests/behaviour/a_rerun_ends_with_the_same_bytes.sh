#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A training that is run again on the same number of ranks ends with the same bytes, on the same hosts and on others, though the folder with its
# experiment is gone. With another seed it ends with others.
source "$(dirname "$0")/harness.sh"
[[ -x ${DTOOL_TRAINER:-} ]] || skip 'needs dtool-trainer, which was not built'
lab 3
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
output() { echo "$DTOOL_LAB_FOLDER/host$1$(json 'd["machines"][0]["output_folder"].replace("~", "/root")')"; }
checkpoint() { find "$1/checkpoints" -name 'step_*.safetensors' | sort | tail -n 1; }
again() {  # the first host, and flags
  local host=$1
  shift
  expect_exit 0 timeout 120 "$DTOOL" rerun --json --follow "$@"
  folder=$(output "$host")
}

mkdir code
printf '%s\n' 'workload = "classifier"' 'data.source = "digits"' 'data.test_samples = 100' 'train.batch_size = 16' 'train.epochs = 2' >code/e.toml
cd code
expect_exit 0 timeout 120 "$DTOOL" run --json --follow --runs_on "${address[0]},${address[1]}" e.toml
run=$(json 'd["run_id"]')
seed=$(json 'd["seed"]')
first=$(output 1)
cd ..
rm -r code

again 1 "$run"
expect_equal "$run $seed" "$(json '"%s %s" % (d["rerun_of"], d["seed"])')"
[[ $folder != "$first" ]] || fail 'it has no outputs of its own'
cmp "$(checkpoint "$first")" "$(checkpoint "$folder")" || fail 'it ended otherwise'
again 3 "$run" --runs_on "${address[2]},${address[0]}"
cmp "$(checkpoint "$first")" "$(checkpoint "$folder")" || fail 'it ended otherwise on other hosts'
again 1 "$run" --seed 12
! cmp -s "$(checkpoint "$first")" "$(checkpoint "$folder")" || fail 'the seed changed nothing'

# An experiment that comes with dtool needs no code at all.
expect_exit 0 timeout 120 "$DTOOL" run --json --follow --runs_on "${address[0]}" digits --config_kwargs '{"train":{"epochs":1}}'
run=$(json 'd["run_id"]')
first=$(output 1)
again 2 "$run" --runs_on "${address[1]}"
cmp "$(checkpoint "$first")" "$(checkpoint "$folder")" || fail 'the experiment that comes with dtool ended otherwise'
