#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A training that is started at a terminal without hosts is followed unasked, and its curves are drawn at its end. Ctrl-C leaves it
# running. Without a terminal, with --quiet, and for other programs `dtool run` returns at once. Of environments that others wrote
# `show` and `diff` tell which they were.
source "$(dirname "$0")/harness.sh"
needs_file "${DTOOL_TRAINER:-/no/trainer}"
needs_program script

on_terminal() { timeout 120 env TERM=xterm script -qec "stty cols 100 rows 40; $(printf '%q ' "$@")" /dev/null; }
short() { printf '{"train": {"epochs": 2}, "data": {"train_samples": %d}}' "$1"; }
curve='└─'

# ---- in an empty folder: one command, a curve at the end
expect_exit 0 on_terminal "$DTOOL" run digits --seed 1 --config_kwargs "$(short 2000)" </dev/null
expect_output 'Ctrl-C ends this view of it; the run goes on'
expect_output 'epoch 2/2 done'
expect_output ' loss  .*last '
expect_output "$curve"
expect_output '^curves:  dtool plot digits_'
expect_equal 'digits' "$(awk '/epoch 2\/2 done/ { ended = 1 } ended && /loss .*last/ { print "digits"; exit }' "$out")"

# ---- so it is where one goes on from another
first=$(basename "$HOME"/.dtool/records/digits_*.json .json)
expect_exit 0 on_terminal "$DTOOL" run --resume "$first" --config_kwargs '{"train": {"epochs": 3}}' </dev/null
expect_output 'Ctrl-C ends this view of it; the run goes on'
expect_no_output 'epoch 2/3 done'
expect_output 'epoch 3/3 done'
expect_output "$curve"

# ---- --follow draws them too, and a run that failed has none
expect_exit 0 on_terminal "$DTOOL" run digits --follow --config_kwargs "$(short 500)" </dev/null
expect_output "$curve"
expect_no_output 'Ctrl-C ends this view'
expect_exit 1 on_terminal "$DTOOL" run regression --follow --config_kwargs '{"model": {"hidden": []}, "optimizer": {"kind": "sgd", "learning_rate": 1000}}' </dev/null
expect_no_output "$curve"

# ---- what returns at once
expect_exit 0 dtool run digits --config_kwargs "$(short 500)"
expect_no_output .
expect_error '^look:    dtool status digits_'
expect_exit 0 on_terminal "$DTOOL" run digits --quiet --config_kwargs "$(short 500)" </dev/null
expect_no_output "epoch|$curve"
touch code
expect_exit 0 on_terminal "$DTOOL" run -- sleep 443322 </dev/null
expect_output '^look:    dtool status sleep_'

# ---- Ctrl-C
mkfifo keys
{ on_terminal "$DTOOL" run digits --extra_tag stays --config_kwargs '{"train": {"epochs": 100000}}' <keys >"$out" 2>"$err" || exit; } &
waiting=$!
exec 3>keys
eventually 60 grep -q 'epoch 1/100000' "$out"
printf '\003' >&3
expect_ended 130 "$waiting" 'dtool run at a terminal, interrupted'
exec 3>&-
expect_output 'interrupted: the run goes on by itself'
expect_exit 0 dtool status digits_stays
expect_output 'running'
expect_exit 0 dtool kill --all --yes --delete
expect_equal '' "$(pgrep -f '^sleep 443322' || true)"

# ---- the environments of others are in the record
worker=$(dirname "$DTOOL_TRAINER")/example_worker
[[ -x $worker ]] || fail "no $worker"
printf '%s\n' 'workload = "ppo"' "environment.command = [\"$worker\"]" 'environment.samplers = 8' 'ppo.num_steps = 16' \
  'pipeline.steps = 500' 'validation.episodes = 4' >walks.toml
expect_exit 0 dtool run walks.toml --follow --extra_tag short
expect_exit 0 dtool run walks.toml --follow --extra_tag long --config_kwargs '{"environment": {"kwargs": {"length": 9}}}'
expect_exit 0 dtool show long
expect_output '^simulator +package corridors 1\.0$'
expect_exit 0 dtool show long --json
expect_equal '{"kwargs":{"length":9}} corridors 1.0' "$(json '"%s %s" % (d["simulator"]["arguments"], d["simulator"]["package"])')"
expect_exit 0 dtool diff short long
expect_output '^  simulator: arguments +\{\} +\{"kwargs":\{"length":9\}\}$'
expect_no_output 'simulator: package'
