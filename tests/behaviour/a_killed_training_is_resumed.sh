#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `run --resume` goes on from the checkpoint that a killed training left: on the same hosts it ends with the bytes of a training that was
# never stopped, on other hosts and on another number of ranks it goes on, too. Metrics, curves and checkpoints go on in the same folder.
source "$(dirname "$0")/harness.sh"
[[ -x ${DTOOL_TRAINER:-} ]] || skip 'needs dtool-trainer, which was not built'
lab 3
printf '%s\n' 'workload = "classifier"' 'distributed_nodes = 2' 'data.source = "digits"' 'data.train_samples = 20000' 'data.test_samples = 100' \
  'train.batch_size = 2' 'train.epochs = 2' 'checkpoint.every_epochs = 1' 'logging.every_steps = 50' >e.toml
last=step_000010000.safetensors
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
killfiles() { ls "$HOME/.dtool/killfiles"; }
folder_on() { echo "$DTOOL_LAB_FOLDER/host$1$(json "d['machines'][0]['output_folder'].replace('~', '/root')")"; }
# The steps of the lines of training, in order.
steps() { sed -n 's/.*"event": *"step".*"step": *\([0-9]*\).*/\1/p' "$1/metrics.jsonl"; }

# begun TAG [ARGUMENT...]: a run that is killed in its first epoch; sets `run` and `folder`.
begun() {
  expect_exit 0 timeout 100 "$DTOOL" run --json --runs_on "${address[0]},${address[1]}" --seed 3 --extra_tag "$@" e.toml
  run=$(json 'd["run_id"]') folder=$(folder_on 1)
  eventually 60 grep -q 'samples/s' "$folder/machine0.log"
  expect_exit 0 timeout 60 "$DTOOL" kill --yes --delete "$run"
}

expect_exit 0 timeout 200 "$DTOOL" run --json --follow --runs_on "${address[0]},${address[1]}" --seed 3 e.toml
whole=$(folder_on 1)
expect_file "$whole/checkpoints/$last"
[[ $(steps "$whole" | wc -l) -ge 100 ]] || fail "no steps in $whole/metrics.jsonl"

# The same hosts: nothing but the run is named.
begun cut
first=$run
[[ ! -e $folder/checkpoints/$last ]] || fail 'it had ended before it was killed'
stopped=$(steps "$folder" | tail -n 1)
[[ -n $stopped ]] && ((stopped < 10000)) || fail "killed at step '$stopped'"
expect_exit 0 dtool run --resume "$first" --dry_run
expect_output "^resumes +$first\$"
expect_exit 0 timeout 200 "$DTOOL" run --json --follow --resume "${first%-*}"
second=$(json 'd["run_id"]')
expect_equal "$folder" "$(folder_on 1)"
expect_equal "['$first'] 3 2" "$(json '"%s %d %d" % (d["chain"], d["seed"], d["world_size"])')"
cmp "$whole/checkpoints/$last" "$folder/checkpoints/$last" || fail 'it ended otherwise'
expect_equal "$(steps "$whole")" "$(steps "$folder")"
expect_file "$folder/machine0.$second.log"
grep -q "^resumed from .*/checkpoints/step_.*\.safetensors" "$folder/machine0.$second.log" || fail 'no word of the checkpoint'
expect_equal 2 "$(find "$folder" -name 'events.out.tfevents.*' | wc -l)"
expect_equal 1 "$(find "$(dirname "$folder")" -maxdepth 1 -name '*_cut_*' | wc -l)"

# The chain is shown, and a run is gone on from once.
expect_exit 0 dtool status "$second"
expect_output "^resumes $first\$"
expect_exit 0 dtool list
expect_output "^$second .*  resumes $first\$"
expect_exit 0 dtool show "$second"
expect_output "^resumes +$first\$"
expect_exit 0 dtool logs "$second" --tail 1
expect_exit 2 dtool run --resume "$first"
expect_error "$second goes on from $first already"
expect_error "dtool run --resume $second goes on from that one"

# Another host, and one rank in the place of two; then back to two with another length.
begun moved
third=$run
stopped=$(steps "$folder" | tail -n 1)
expect_exit 0 timeout 200 "$DTOOL" run --json --follow --resume "$third" --runs_on "${address[2]}"
fourth=$(json 'd["run_id"]')
moved=$(folder_on 3)
expect_equal "$(basename "$folder")" "$(basename "$moved")"
expect_equal 1 "$(json 'd["world_size"]')"
expect_equal '' "$(steps "$moved" | sort -n | uniq -d)"
expect_equal "$(steps "$moved")" "$(steps "$moved" | sort -n)"
expect_equal "$(steps "$folder")" "$(steps "$moved" | head -n "$(steps "$folder" | wc -l)")"
(($(steps "$moved" | tail -n 1) > stopped)) || fail 'no step more'
expect_file "$moved/machine0.log"
expect_no_file "$moved/.dtool_brought0"
expect_no_file "$HOME/.dtool/brought/$fourth"
expect_exit 0 timeout 200 "$DTOOL" run --json --follow --resume "$fourth" --runs_on "${address[1]},${address[0]}" --config_kwargs '{"train":{"epochs":3}}'
expect_equal "['$third', '$fourth'] 2" "$(json '"%s %d" % (d["chain"], d["world_size"])')"
back=$(folder_on 2)
expect_equal '' "$(steps "$back" | sort -n | uniq -d)"
expect_equal "$(steps "$moved")" "$(steps "$back" | head -n "$(steps "$moved" | wc -l)")"
grep -q '"epoch": *3' "$back/metrics.jsonl" || fail 'no third epoch'

# What a checkpoint depends on stays, and so do the seed and the launcher.
begun refused
before=$(killfiles)
expect_exit 2 dtool run --resume "$run" --config_kwargs '{"model":{"hidden":[3]}}'
expect_error '--config_kwargs changes model.hidden'
expect_exit 2 dtool run --resume "$run" --config_kwargs '{"data":{"train_samples":10}}'
expect_error '--config_kwargs changes data.train_samples'
expect_exit 2 dtool run --resume "$run" --seed 4
expect_error '--seed must stay 3'
expect_exit 2 dtool run --resume "$run" --launcher mpi
expect_error '--launcher must stay ssh'
expect_exit 2 dtool run --resume "$run" --seeds 1-3
expect_error '--seeds starts a run for each seed'
expect_exit 2 dtool run --resume "$run" e.toml
expect_error 'e.toml was named, too'
expect_exit 2 dtool run --resume "$run" --config_kwargs '{"trian":{"epochs":3}}'
expect_error 'trian'
# Without a checkpoint nothing is started.
rm -r "$folder/checkpoints"
expect_exit 2 dtool run --resume "$run"
expect_error "there is no checkpoint in .*/$run/checkpoints"
expect_error '^nothing was started$'
rm -r "$folder"
expect_exit 2 dtool run --resume "$run" --runs_on "${address[2]}"
expect_error "there is no output folder .*/$run"
expect_equal "$before" "$(killfiles)"
