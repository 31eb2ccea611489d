#!/bin/bash
# Whatever ends a worker or a machine's process, on whichever machine and in whichever phase: all processes of all
# machines stop, and every machine's log ends with the same line, which says who failed and how. With --table as second
# argument it prints what it saw and how long it took, for docs/experiment.md.
. "$(dirname "$0")/harness.sh"
table=${2:-}
host=$(hostname)
preload=$(dirname "$trainer")/libbreak_on_signal.so
[ -e "$preload" ] || fail "no $preload"
machines=3 ranks=1  # so many on each machine
common=(distributed.collective_timeout_seconds=60)
small=(data.train_samples=3000 data.test_samples=300 logging.every_steps=20)

# start: e.toml on three machines; their processes in ${pids[@]}.
start() {
  local machine listener
  listener=127.0.0.1:$(free_port)
  rm -rf ./*.log out gone
  pids=()
  for ((machine = 0; machine < machines; machine++)); do
    LD_PRELOAD=$preload "$trainer" e.toml --machine_id $machine --distributed_nodes 3 --nproc_per_node $ranks \
      --distributed_ip_and_port "$listener" --output_dir out > machine$machine.log 2>&1 &
    pids[machine]=$!
    started+=($!)
  done
}

is_over() {
  local pid
  for pid in "${pids[@]}" "${workers[@]}"; do has_ended "$pid" || return 1; done
}

# all_workers: remembers them in ${workers[@]}.
all_workers() {
  local pid
  for pid in "${pids[@]}"; do await 60 "the workers of $pid" has_children "$pid" $ranks; done
  # shellcheck disable=SC2207
  workers=($(for pid in "${pids[@]}"; do children "$pid"; done))
}

# ended FAULT CODES PATTERN: all are gone within 60 s, with these exit codes; the last line of each log is the same and
# matches. A code '-' is a machine's that was itself killed, and can say nothing.
ended() {
  local fault=$1 pattern="dtool-trainer: $3" machine line seen='' began=$EPOCHREALTIME
  local -a codes
  read -ra codes <<< "$2"
  await 60 "$fault: the end" is_over
  local seconds
  seconds=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
  for ((machine = 0; machine < machines; machine++)); do
    await_exit "${pids[machine]}" 2> /dev/null
    [ "${codes[machine]}" != - ] || continue
    [ $code = "${codes[machine]}" ] || fail "$fault: machine $machine exits with $code"
    line=$(tail -n 1 machine$machine.log)
    [[ $line =~ ^$pattern$ ]] || fail "$fault: machine $machine says '$line', not '$pattern'"
    [ -z "$seen" ] || [ "$line" = "$seen" ] || fail "$fault: the machines do not agree"
    [ "$(grep -c "^dtool-trainer: " machine$machine.log)" = 1 ] || fail "$fault: machine $machine says more than one line"
    seen=$line
  done
  [ -z "$table" ] || printf '| %s | `%s` | %s |\n' "$fault" "${seen//$host/red0x}" "$seconds"
}

train() {
  digits_experiment e.toml "${common[@]}" "${small[@]}" train.epochs=1000000 "${@:-checkpoint.every_epochs=0}"
  start
  await 60 "training" is_training machine0.log
  all_workers
}

# broken SIGNAL RANK...: the signal goes to the workers of these ranks, at once.
broken() {
  local signal=$1 rank victims=()
  shift
  for rank; do victims+=("$(worker_of "${pids[rank / ranks]}" "$rank")"); done
  kill -"$signal" "${victims[@]}"
}

[ -z "$table" ] || printf '| fault | last line of every log | seconds |\n|---|---|---|\n'

train; broken KILL 1
ended 'a worker is killed' '1 1 1' "rank 1 on machine 1 \($host\) was killed by signal 9 \(Killed\)"
train; broken SEGV 2
ended 'a worker crashes' '1 1 1' "rank 2 on machine 2 \($host\) was killed by signal 11 \(Segmentation fault\)"
train; broken USR1 2
ended 'a library ends a worker' '1 1 1' "rank 2 on machine 2 \($host\) failed with exit code 3: a library is out of luck"
train; broken PIPE 0; sleep 0.5; broken USR2 1
ended 'an exception that nobody catches' '1 1 1' \
  "rank 1 on machine 1 \($host\): nobody catches this"
train; broken KILL 0
ended 'rank 0, which holds the store, is killed' '1 1 1' "rank 0 on machine 0 \($host\) was killed by signal 9 \(Killed\)"
ranks=2
train; broken KILL 1 3 5
ended 'three ranks are killed at once' '1 1 1' "rank [135] on machine [012] \($host\) was killed by signal 9 \(Killed\)"
ranks=1
train checkpoint.every_epochs=1; mv out gone; : > out  # at once: rank 0 goes on writing there
ended 'an exception: the output folder is gone' '1 1 1' "rank 0 on machine 0 \($host\) failed with exit code 1: .*out/.*"
train; kill -KILL "${pids[1]}"
ended "a machine's dtool-trainer is killed" '1 - 1' "machine 1 \($host\) was lost: its dtool-trainer ended without a word"
train; kill -KILL "${pids[0]}"
ended "machine 0's dtool-trainer is killed" '- 1 1' "machine 0 \($host\) was lost: its dtool-trainer ended without a word"
train; kill -TERM "${pids[2]}"
ended "a machine's dtool-trainer is terminated" '1 1 143' \
  "machine 2 \($host\): ended by signal 15 \(Terminated\)"

# Phases: before the ranks have met, while they load data, during the test, and after the last step.
digits_experiment e.toml "${common[@]}" "${small[@]}"
machines=2; start
all_workers
broken KILL 1
ended 'a worker is killed while a machine is missing' '1 1' "rank 1 on machine 1 \($host\) was killed by signal 9 \(Killed\)"
machines=3
digits_experiment e.toml "${common[@]}" data.train_samples=2000000
start
all_workers
await 60 "loading" grep -q data.train_samples machine0.log
broken KILL 1
ended 'a worker is killed while it loads data' '1 1 1' "rank 1 on machine 1 \($host\) was killed by signal 9 \(Killed\)"
digits_experiment e.toml "${common[@]}" data.train_samples=640 data.test_samples=100000 'model.hidden=[2048]' \
  train.epochs=1 logging.every_steps=1
start
all_workers
await 100 "the test" grep -q 'step 1 ' machine0.log
broken KILL 1
ended 'a worker is killed during the test' '1 1 1' "rank 1 on machine 1 \($host\) was killed by signal 9 \(Killed\)"
digits_experiment e.toml "${common[@]}" "${small[@]}" train.epochs=1
export DTOOL_TEST_ABORTS_AT_EXIT=2
start
all_workers
unset DTOOL_TEST_ABORTS_AT_EXIT
await 60 "the end of training" grep -q '^test accuracy' machine0.log
ended 'a worker breaks after its last step' '1 1 1' \
  "rank 2 on machine 2 \($host\) was killed by signal 6 \(Aborted\): broken at the very end"

# A rank that hangs is found by its silence.
common=(distributed.collective_timeout_seconds=3 checkpoint.best=false)  # without a wait for the disk between steps
train; broken STOP 1
ended 'a worker hangs (after the collective timeout, here 3 s)' '1 1 1' "no sign of life from rank 1 on machine 1 \($host\)"
train; kill -STOP "${pids[1]}" "${workers[1]}"
frozen=${pids[1]} pids[1]=${pids[0]}
unset 'workers[1]'
ended 'a whole machine hangs (likewise)' '1 - 1' \
  "(no sign of life from rank 1 on machine 1 \($host\)|machine 1 \($host\) was lost: no sign of life for 3 s)"
kill -KILL "$frozen"
