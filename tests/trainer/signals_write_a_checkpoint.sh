#!/bin/bash
# SPDX-License-Identifier: MIT
# SIGUSR1 to any process of a run has rank 0 write a checkpoint between two steps, and training goes on; SIGTERM has it write one before the
# end. A run resumed from either ends with the same bytes as one that was never stopped. Runs without checkpoints end at once.
. "$(dirname "$0")/harness.sh"
digits_experiment e.toml data.train_samples=12000 data.test_samples=100 train.epochs=2 train.batch_size=8 logging.every_steps=20 \
  'model.layers = ["linear 16", "batch_norm", "relu", "dropout 0.2"]'
common=(e.toml --seed 5)
last=step_000001000.safetensors
"$trainer" "${common[@]}" --nproc_per_node 3 --output_dir whole > whole.log 2>&1 || fail "the whole run: exit code $?"
[ -e "whole/checkpoints/$last" ] || fail "the whole run has other steps than this test thinks"

begin() {  # NAME [ARGUMENT]...: starts a run of three ranks and waits until it is within an epoch
  local name=$1
  shift
  "$trainer" "${common[@]}" --nproc_per_node 3 --output_dir "$name" "$@" > "$name.log" 2>&1 &
  run=$!
  started+=("$run")
  await 60 "training of $name" is_training "$name.log"
}
told() { grep -Eq "^checkpoint written: step [0-9]+, since $2 came$" "$1.log"; }
kept_step() { sed -n "s/^checkpoint written: step \([0-9]*\), since .*/\1/p" "$1.log" | tail -n 1; }
# The last thing that NAME was asked to keep is within an epoch, and is the same run.
resumes() {
  local step
  step=$(kept_step "$1")
  [ $((step % 500)) -gt 0 ] || fail "$1 was kept at step $step, where an epoch ends"
  cp -r "$1" "$1.again"
  rm -f "$1.again/checkpoints/$last"
  "$trainer" "${common[@]}" --nproc_per_node 3 --output_dir "$1.again" --checkpoint \
    "$1/checkpoints/$(printf 'step_%09d.safetensors' "$step")" > "$1.again.log" 2>&1 || fail "$1 is not resumed: exit code $?"
  cmp "whole/checkpoints/$last" "$1.again/checkpoints/$last" || fail "$1 ended otherwise"
}

begin usr1
kill -USR1 "$run"
await 60 "the checkpoint of usr1" told usr1 SIGUSR1
cp -r usr1/checkpoints usr1.kept
await_exit "$run"
[ "$code" = 0 ] || fail "after USR1 the exit code is $code"
cmp "whole/checkpoints/$last" "usr1/checkpoints/$last" || fail "the run that went on after USR1 ended otherwise"
cp -n usr1.kept/* usr1/checkpoints/
resumes usr1

# One that has not rank 0: it tells rank 0 by and by.
digits_experiment endless.toml train.epochs=1000000
"$trainer" endless.toml --nproc_per_node 3 --output_dir other > other.log 2>&1 &
run=$!
started+=("$run")
await 60 "training of other" is_training other.log
kill -USR1 "$(worker_of "$run" 2)"
await 60 "the checkpoint of other" told other SIGUSR1
kill -TERM "$run"
await_exit "$run" 2> /dev/null
[ "$code" = 143 ] || fail "after TERM the exit code is $code"
told other SIGTERM || fail "TERM to a run that goes on for ever kept nothing"

begin term
kill -TERM "$run"
await_exit "$run" 2> /dev/null
[ "$code" = 143 ] || fail "after TERM the exit code is $code"
told term SIGTERM || fail "TERM kept nothing"
tail -n 1 term.log | grep -q 'ended by signal 15 (Terminated)$' || fail "TERM is not told of at the end"
resumes term

# As kill does: every process at once, and since the session's leader is among them, all are hung up on.
begin all
processes=$(children "$run")
# shellcheck disable=SC2086
{ kill -HUP $processes; kill -TERM "$run" $processes; kill -HUP "$run"; } 2> /dev/null || true
await_exit "$run" 2> /dev/null
[ "$code" = 143 ] || [ "$code" = 129 ] || fail "after TERM to all the exit code is $code"
told all SIGTERM || fail "TERM to all kept nothing"
resumes all

# Two machines: the one that has not rank 0 is terminated.
port=$(free_port)
for machine in 0 1; do
  "$trainer" endless.toml --nproc_per_node 1 --machine_id $machine --distributed_nodes 2 --distributed_ip_and_port "127.0.0.1:$port" \
    --output_dir machines > "machines$machine.log" 2>&1 &
  machines[machine]=$!
  started+=($!)
done
await 60 "training on two machines" is_training machines0.log
kill -TERM "${machines[1]}"
await_exit "${machines[1]}" 2> /dev/null
[ "$code" = 143 ] || fail "the terminated machine's exit code is $code"
await_exit "${machines[0]}" 2> /dev/null
[ "$code" = 1 ] || fail "the other machine's exit code is $code"
told machines0 SIGTERM || fail "TERM to machine 1 kept nothing"
tail -n 1 machines1.log | grep -q '^dtool-trainer: machine 1 .* ended by signal 15 (Terminated)$' || fail "machine 1 has another cause"

# Under another launcher, which signals the ranks themselves; the first time twice, as where it and a script in between do.
for to in '0 1 0 1' '1'; do
  port=$(free_port)
  for rank in 0 1; do
    RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
      "$trainer" endless.toml --output_dir "ranks$to" > "rank$rank$to.log" 2>&1 &
    ranks[rank]=$!
    started+=($!)
  done
  await 60 "training of ranks" is_training "rank0$to.log"
  for rank in $to; do kill -TERM "${ranks[rank]}" 2> /dev/null || true; done
  await_exit "${ranks[1]}" 2> /dev/null
  [ "$code" = 143 ] || fail "TERM to $to: the exit code of rank 1 is $code"
  await_exit "${ranks[0]}" 2> /dev/null
  [ "$code" = "$([ "$to" = 1 ] && echo 3 || echo 143)" ] || fail "TERM to $to: the exit code of rank 0 is $code"
  told "rank0$to" SIGTERM || fail "TERM to rank $to kept nothing"
done

# SIGHUP counts as SIGTERM, but not under nohup.
nohup "$trainer" endless.toml --nproc_per_node 2 --output_dir hangup > hangup.log 2>&1 &
run=$!
started+=("$run")
await 60 "training of hangup" is_training hangup.log
# shellcheck disable=SC2046
kill -HUP "$run" $(children "$run")
kill -USR1 "$run"
await 60 "the checkpoint of hangup" told hangup SIGUSR1
kill -TERM "$run"
await_exit "$run" 2> /dev/null
[ "$code" = 143 ] || fail "a run that was hung up on under nohup has the exit code $code"

endless_experiment none.toml
"$trainer" none.toml --nproc_per_node 3 --output_dir none > none.log 2>&1 &
run=$!
started+=("$run")
await 60 "training of none" is_training none.log
kill -USR1 "$run"
sleep 0.5
kill -TERM "$run"
await_exit "$run" 2> /dev/null
[ "$code" = 143 ] || fail "without checkpoints, after TERM, the exit code is $code"
! grep -q 'checkpoint written' none.log || fail "a checkpoint that nobody wanted"
! compgen -G 'none/checkpoints/step_*' || fail "a checkpoint file that nobody wanted"
