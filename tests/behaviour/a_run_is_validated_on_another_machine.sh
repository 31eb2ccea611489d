#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# While an agent trains on one machine, another that sees its output folder tries its checkpoints in houses it was not trained in; `status`
# and `plot` of the run that trains tell of both.
source "$(dirname "$0")/harness.sh"
needs_isolation
[[ -x ${DTOOL_TRAINER:-} ]] || skip 'needs dtool-trainer, which was not built'
lab 2 --shared_home
experiment='"environment":{"samplers":8},"model":{"embedding":16,"hidden":16},"ppo":{"num_steps":16},"checkpoint":{"every_steps":20000,"keep":100}'
experiment+=',"pipeline":{"steps":200000}'
validation='"every_steps":0,"episodes":20'

expect_exit 0 timeout 100 "$DTOOL" run objectnav --json --runs_on h1 --seed 1 --config_kwargs "{$experiment,\"validation\":{$validation}}"
run_id=$(json 'd["run_id"]')
outputs=$(json 'd["machines"][0]["output_folder"]')
folder=$DTOOL_LAB_FOLDER/host1${outputs/#'~'//root}
eventually 60 grep -q samples/s "$folder/machine0.log"

expect_exit 0 timeout 200 "$DTOOL" run objectnav --runs_on h2 --follow --config_kwargs "{$experiment,\"validation\":{$validation,\"follow\":\"$outputs\"}}"
expect_output '^machine0: validation success [01]\.[0-9]{4}$'

# Ten checkpoints, and perhaps one more where the last update went over the end; each once, and none else.
checkpoints=$(find "$folder/checkpoints" -name 'step_*.safetensors' | sed 's/.*step_0*//; s/\.safetensors//' | sort -n)
[[ $(wc -l <<<"$checkpoints") -ge 10 ]] || fail "few checkpoints: $checkpoints"
expect_equal "$checkpoints" "$(sed -n 's/.*"event": "validation".*"step": \([0-9]*\).*/\1/p' "$folder/validation.jsonl")"
last=$(sed -n '$s/.*"validation_success": \([0-9.]*\).*/\1/p' "$folder/validation.jsonl")

# The run that trained told its own last validation, and heard of the other's.
expect_exit 0 timeout 60 "$DTOOL" plot "$run_id" --json
expect_equal "$checkpoints" "$(json '"\n".join(str(s) for s in sorted({s for c in d["curves"] if c["metric"] == "validation_success" for s in c["steps"]}))')"
expect_exit 0 timeout 60 "$DTOOL" status "$run_id"
expect_output "validation success $(printf %.4f "$last")"
expect_exit 0 timeout 60 "$DTOOL" kill --all --yes --delete
