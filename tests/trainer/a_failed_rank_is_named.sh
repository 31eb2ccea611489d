#!/bin/bash
# SPDX-License-Identifier: MIT
# Whatever ends a rank, in whichever phase: dtool-trainer ends the others, exits with 1, and its last line says which rank
# failed first and how. Of several machines each does so with its own ranks; a rank of another one is only missed.
. "$(dirname "$0")/harness.sh"
host=$(hostname)
preload=$(dirname "$trainer")/libbreak_on_signal.so
[ -e "$preload" ] || fail "no $preload"
ranks=3
common=(distributed.collective_timeout_seconds=60)
small=(data.train_samples=3000 data.test_samples=300 logging.every_steps=20)

start() {  # e.toml; the process in $pid, its workers in ${workers[@]}
  rm -rf run.log out gone
  LD_PRELOAD=$preload "$trainer" e.toml --nproc_per_node $ranks --output_dir out > run.log 2>&1 &
  pid=$!
  started+=("$pid")
  await 60 "the workers" has_children "$pid" $ranks
  # shellcheck disable=SC2207
  workers=($(children "$pid"))
}

is_over() {
  local each
  for each in "$pid" "${workers[@]}"; do has_ended "$each" || return 1; done
}

ended() {  # $1: fault, $2: exit code, $3: pattern of the last line
  local line
  await 60 "$1: the end" is_over
  await_exit "$pid" 2> /dev/null
  [ "$code" = "$2" ] || fail "$1: exit code $code"
  line=$(tail -n 1 run.log)
  [[ $line =~ ^dtool-trainer:\ $3$ ]] || fail "$1: it says '$line', not '$3'"
  [ "$(grep -c "^dtool-trainer: " run.log)" = 1 ] || fail "$1: it says more than one line"
}

train() {
  digits_experiment e.toml "${common[@]}" "${small[@]}" train.epochs=1000000 "${@:-checkpoint.every_epochs=0}"
  start
  await 60 "training" is_training run.log
}

broken() {  # $1: signal for the workers of these ranks ($2...), at once
  local signal=$1 rank victims=()
  shift
  for rank; do victims+=("$(worker_of "$pid" "$rank")"); done
  kill -"$signal" "${victims[@]}"
}

train; broken KILL 1
ended 'a worker is killed' 1 "rank 1 on machine 0 \($host\) was killed by signal 9 \(Killed\)"
train; broken SEGV 2
ended 'a worker crashes' 1 "rank 2 on machine 0 \($host\) was killed by signal 11 \(Segmentation fault\)"
train; broken USR1 2
ended 'a library ends a worker' 1 "rank 2 on machine 0 \($host\) failed with exit code 3"
train; broken PIPE 0; sleep 0.5; broken USR2 1
ended 'an exception that nobody catches' 1 "rank 1 on machine 0 \($host\): nobody catches this"
train; broken KILL 0
ended 'rank 0, which holds the store, is killed' 1 "rank 0 on machine 0 \($host\) was killed by signal 9 \(Killed\)"
train; broken KILL 0 1 2
ended 'all ranks are killed at once' 1 "rank [012] on machine 0 \($host\) was killed by signal 9 \(Killed\)"
train checkpoint.every_epochs=1; mv out gone; : > out  # at once: rank 0 goes on writing there
ended 'an exception: the output folder is gone' 1 "rank 0 on machine 0 \($host\) failed with exit code 1: .*out/.*"

# Phases: before the ranks have met, while they load data, during the test, and after the last step.
digits_experiment e.toml "${common[@]}" data.train_samples=2000000
start
await 60 "loading" grep -q data.train_samples run.log
broken KILL 1
ended 'a worker is killed while it loads data' 1 "rank 1 on machine 0 \($host\) was killed by signal 9 \(Killed\)"
digits_experiment e.toml "${common[@]}" data.train_samples=640 data.test_samples=100000 'model.hidden=[2048]' \
  train.epochs=1 logging.every_steps=1
start
await 100 "the test" grep -q 'step 1 ' run.log
broken KILL 1
ended 'a worker is killed during the test' 1 "rank 1 on machine 0 \($host\) was killed by signal 9 \(Killed\)"
digits_experiment e.toml "${common[@]}" "${small[@]}" train.epochs=1
export DTOOL_TEST_ABORTS_AT_EXIT=2
start
unset DTOOL_TEST_ABORTS_AT_EXIT
await 60 "the end of training" grep -q '^test accuracy' run.log
ended 'a worker breaks after its last step' 1 "rank 2 on machine 0 \($host\) was killed by signal 6 \(Aborted\)"

# A rank that hangs is found when the others have waited for it.
common=(distributed.collective_timeout_seconds=3 checkpoint.best=false)  # without a wait for the disk between steps
train; broken STOP 1
ended 'a worker hangs' 1 "rank 1 on machine 0 \($host\) gives no sign of life: it is stopped"

# The same where exchanges may take for ever: the rank is silent.
common=(distributed.collective_timeout_seconds=3600 distributed.heartbeat_timeout_seconds=5 checkpoint.best=false)
train; broken STOP 1
ended 'a worker is silent' 1 "rank 1 on machine 0 \($host\) gives no sign of life: it is stopped"
common=(distributed.collective_timeout_seconds=3 checkpoint.best=false)

# Two machines: the other one's ranks wait in vain for so long.
digits_experiment e.toml "${common[@]}" "${small[@]}" train.epochs=1000000 checkpoint.every_epochs=0
listener=127.0.0.1:$(free_port)
for machine in 0 1; do
  "$trainer" e.toml --machine_id $machine --distributed_nodes 2 --distributed_ip_and_port "$listener" \
    --output_dir out > machine$machine.log 2>&1 &
  pids[machine]=$!
  started+=($!)
done
await 60 "training" is_training machine0.log
kill -STOP "$(worker_of "${pids[1]}" 1)"
await 60 "the end of machine 0" is_gone "${pids[0]}"
await_exit "${pids[0]}"
[ $code = 1 ] || fail "machine 0 exits with $code"
[[ $(tail -n 1 machine0.log) =~ ^dtool-trainer:\ rank\ 0\ on\ machine\ 0\ \($host\):\  ]] || fail "machine 0 does not say what it missed"
