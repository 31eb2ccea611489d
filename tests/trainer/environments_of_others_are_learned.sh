#!/bin/bash
# SPDX-License-Identifier: MIT
# Workload ppo with a worker in C++: two ranks learn in its environments. A worker that is killed ends the run and is named, or is started
# anew if the experiment says so; SIGTERM leaves a checkpoint, from which the environments begin new episodes; no worker is left.
. "$(dirname "$0")/harness.sh"
worker=$(dirname "$trainer")/example_worker
[ -x "$worker" ] || fail "no $worker"

experiment() {  # FILE [TOML line]...
  local file=$1
  shift
  printf '%s\n' 'workload = "ppo"' "environment.command = [\"$worker\", \"$work\"]" 'environment.samplers = 8' \
    'environment.workers = 2' 'ppo.num_steps = 16' 'validation.episodes = 20' 'optimizer.learning_rate = 3e-3' "$@" > "$file"
}
# All processes of this test's workers have its folder as their argument.
workers() { pgrep -f "^$worker $work" || true; }
# shellcheck disable=SC2046
have_workers() { [ $(workers | wc -l) -eq "$1" ]; }

experiment learns.toml 'pipeline.steps = 8000'
"$trainer" learns.toml --nproc_per_node 2 --output_dir learns > learns.log 2>&1 || fail "learning: exit code $?"
grep -q "^environment: .*example_worker: cell \[1\] codes below 5, time \[1\] numbers, choices \[2\], of corridors 1.0; 8 in 2 processes$" learns.log ||
  fail "the log does not say which environments these are"
score=$(metric learns validation validation_reward | tail -n 1)
grep -q '"package": "corridors 1.0"' learns/environment.json || fail "the package is not recorded: $(cat learns/environment.json)"
awk -v score="$score" 'BEGIN { exit !(score > 0.75) }' || fail "the score is ${score:-missing}"
have_workers 0 || fail "workers are left: $(workers)"

begin() {  # NAME [TOML line]...: an endless run of two ranks that has begun to train
  experiment "$1.toml" 'pipeline.steps = 1000000000' 'validation.every_steps = 0' 'logging.every_steps = 1' "${@:2}"
  "$trainer" "$1.toml" --nproc_per_node 2 --output_dir "$1" > "$1.log" 2>&1 &
  run=$!
  started+=("$run")
  await 60 "training of $1" is_training "$1.log"
}

begin killed
kill -KILL "$(workers | tail -n 1)"
await_exit "$run"
[ "$code" = 1 ] || fail "after a worker's end the exit code is $code"
tail -n 1 killed.log | grep -Eq "^dtool-trainer: rank [01] on machine 0 \\($(hostname)\\) failed with exit code 1: environment(s)? [0-9]+.* \
worker was killed by signal 9 \\(Killed\\) \\(process [0-9]+\\)$" || fail "the last line does not name the environment"
await 10 "the end of the workers" have_workers 0

begin anew 'environment.on_failure = "restart"'
kill -KILL "$(workers | tail -n 1)"
await 60 "a new worker" grep -q "it is started anew (1 of 3)$" anew.log
lines=$(grep -c samples/s anew.log)
trains_on() { [ "$(grep -c samples/s anew.log)" -gt $((lines + 3)) ]; }
await 60 "training to go on" trains_on
have_workers 4 || fail "there are $(workers | wc -l) workers"
kill -TERM "$run"
await_exit "$run"
[ "$code" = 143 ] || fail "after SIGTERM the exit code is $code"
await 10 "the end of the workers after SIGTERM" have_workers 0
[ -n "$(ls anew/checkpoints)" ] || fail "SIGTERM left no checkpoint"

"$trainer" anew.toml --nproc_per_node 2 --output_dir anew --checkpoint latest > resumed.log 2>&1 &
run=$!
started+=("$run")
await 60 "training to be resumed" is_training resumed.log
grep -q "the others begin new episodes$" resumed.log || fail "nothing says that new episodes begin"
# Not even the death of a whole machine's processes leaves one.
victims="$run $(children "$run")"
# shellcheck disable=SC2086
kill -KILL $victims
await 10 "the end of the workers of killed ranks" have_workers 0

# A request to end is heard during a validation, too.
experiment validates.toml 'pipeline.steps = 1000000000' 'validation.every_steps = 1' 'logging.every_steps = 1'
sed -i 's/episodes = 20/episodes = 10000000/' validates.toml
"$trainer" validates.toml --nproc_per_node 2 --output_dir validates > validates.log 2>&1 &
run=$!
started+=("$run")
await 60 "the first rollout" is_training validates.log
kill -TERM "$run"
await_exit "$run"
[ "$code" = 143 ] || fail "after SIGTERM in a validation the exit code is $code"
grep -q "the validation is left: the run is to end$" validates.log || fail "nothing says that the validation is left"
[ -n "$(ls validates/checkpoints)" ] || fail "SIGTERM in a validation left no checkpoint"

mistake() {  # RANKS PATTERN: what mistake.toml ends with
  code=0
  "$trainer" mistake.toml --nproc_per_node "$1" --output_dir mistake > mistake.log 2>&1 || code=$?
  [ "$code" = 2 ] || fail "of a mistake the exit code is $code"
  grep -q "^dtool-trainer: .*$2" mistake.log || fail "the mistake is not told: $2"
}
experiment mistake.toml
sed -i "s,$worker,/no/such/worker," mistake.toml
mistake 1 'environment /no/such/worker: its worker ended with exit code 127'
code=0
"$trainer" rollout learns.toml > mistake.log 2>&1 || code=$?
{ [ "$code" = 2 ] && grep -q "^dtool-trainer: learns.toml: its workload has no episodes" mistake.log; } || fail "a rollout is not refused"
# The one with numbers from 0 on has another spec, as on a machine that has another version of the environment.
experiment mistake.toml
sed -i "s,$worker,$(dirname "$trainer")/faulty_worker,; s,$work,disagrees,; s,workers = 2,workers = 1," mistake.toml
mistake 2 'faulty_worker: rank 1 has code \[1\] codes below 5, .*, but rank 0 has code \[1\] codes below 4'
