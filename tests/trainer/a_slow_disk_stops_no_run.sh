#!/bin/bash
# SPDX-License-Identifier: MIT
# A checkpoint takes longer than an exchange between ranks may: training goes on meanwhile, the run ends when the last one is on the disk,
# and nothing is told of before. What was begun is written before a run that fails ends, and a write that fails ends the run.
# To resume may take longer than an exchange, too.
. "$(dirname "$0")/harness.sh"
slow=$(dirname "$trainer")/libslow_disk.so
# The state is of 325 kB, and best.safetensors of as many.
small=(data.test_samples=100 'model.layers = ["linear 32", "relu"]' distributed.collective_timeout_seconds=2)
seconds_a_file=4
on_slow_disk=(env LD_PRELOAD="$slow" SLOW_DISK_BYTES_PER_S=80000)

# Every file takes twice the limit; the last step's checkpoint has the same bytes as on a fast disk.
digits_experiment e.toml "${small[@]}" train.epochs=3 data.train_samples=3000 checkpoint.keep=9
"$trainer" e.toml --seed 3 --nproc_per_node 2 --output_dir fast > fast.log 2>&1 || fail "on a fast disk: exit code $?"
begin=$SECONDS
"${on_slow_disk[@]}" "$trainer" e.toml --seed 3 --nproc_per_node 2 --output_dir slow > slow.log 2>&1 || fail "on a slow disk: exit code $?"
[ $((SECONDS - begin)) -ge $seconds_a_file ] || fail "the disk was not slow"
last=$(cd fast/checkpoints && printf '%s\n' step_* | tail -n 1)
cmp "fast/checkpoints/$last" "slow/checkpoints/$last" || fail "the last checkpoint differs"
cmp fast/checkpoints/best.safetensors slow/checkpoints/best.safetensors || fail "best.safetensors differs"
! compgen -G 'slow/checkpoints/*.partial' || fail "a file that is not whole"
# The epochs have not waited for the disk.
python3 - <<'P' || fail "training waited for the disk"
import json
lines = [json.loads(line) for line in open("slow/metrics.jsonl")]
took = lines[-1]["time"] - lines[0]["time"]
assert lines[-1]["epoch"] == 3 and took < 3.5, took
P
grep -q '^note: the checkpoint of step [0-9]* is left out: the disk is slower than checkpoints come$' slow.log || fail "it does not say what it left out"

# The other rank waits for rank 0, which reads for twice the limit.
first=$(cd fast/checkpoints && printf '%s\n' step_* | head -n 1)
begin=$SECONDS
env LD_PRELOAD="$slow" SLOW_DISK_READ_BYTES_PER_S=80000 "$trainer" e.toml --seed 3 --nproc_per_node 2 --output_dir resumed \
  --checkpoint "fast/checkpoints/$first" > resumed.log 2>&1 || fail "resumed from a slow disk: exit code $?"
[ $((SECONDS - begin)) -ge $seconds_a_file ] || fail "the disk was not slow to read from"
cmp "fast/checkpoints/$last" "resumed/checkpoints/$last" || fail "the resumed run ended differently"

# Two requests during one write; each is answered when a file with its step, or a later one, is there.
digits_experiment endless.toml "${small[@]}" train.epochs=1000000 checkpoint.keep=9 checkpoint.every_epochs=0 checkpoint.every_steps=1000000000 logging.every_steps=20
written() { grep -c "^checkpoint written: step [0-9]*, since $2 came\$" "$1.log" || true; }
has_written() { [ "$(written "$1" "$2")" -ge "$3" ]; }
all_are_there() {
  local step
  while read -r step; do
    compgen -G "$1/checkpoints/step_*$step.safetensors" > /dev/null || fail "$1: step $step is not on the disk"
  done < <(sed -n 's/^checkpoint written: step \([0-9]*\), since .*/\1/p' "$1.log")
}
"${on_slow_disk[@]}" "$trainer" endless.toml --nproc_per_node 2 --output_dir usr1 > usr1.log 2>&1 &
run=$!
started+=("$run")
await 60 "training of usr1" is_training usr1.log
kill -USR1 "$run"
sleep 1
kill -USR1 "$run"
sleep 1
has_written usr1 SIGUSR1 1 && fail "told of before it was on the disk"
await 60 "both answers" has_written usr1 SIGUSR1 2
all_are_there usr1

# TERM during a write: the process ends when the newest state is on the disk.
kill -USR1 "$run"
sleep 1
kill -TERM "$run"
await_exit "$run" 2> /dev/null
[ "$code" = 143 ] || fail "after TERM the exit code is $code"
has_written usr1 SIGTERM 1 || fail "TERM kept nothing"
all_are_there usr1
steps=$(sed -n 's/^checkpoint written: step \([0-9]*\), since SIG\(USR1\|TERM\) came/\2 \1/p' usr1.log | tail -n 2)
[ "$(awk '{ print $2 }' <<< "$steps" | sort -n | tail -n 1)" = "$(sed -n 's/^TERM //p' <<< "$steps")" ] || fail "TERM got an older step: $steps"

# A loss that is no number: what was kept before is written.
printf '%s\n' 'workload = "regression"' 'model.hidden = [4000]' 'data.source = "random"' 'optimizer.kind = "sgd"' \
  optimizer.learning_rate=1000 logging.every_steps=4 checkpoint.every_steps=1 distributed.collective_timeout_seconds=2 > lost.toml
code=0
"${on_slow_disk[@]}" "$trainer" lost.toml --nproc_per_node 2 --output_dir lost > lost.log 2>&1 || code=$?
[ $code = 1 ] || fail "a lost loss: exit code $code"
tail -n 1 lost.log | grep -q 'the loss is no longer a number' || fail "another cause"
compgen -G 'lost/checkpoints/step_*.safetensors' > /dev/null || fail "nothing was written"
! compgen -G 'lost/checkpoints/*.partial' || fail "the run ended in the middle of a file"

# A write that fails, in the middle and at the end of a run.
for epochs in 1 1000000; do
  digits_experiment full.toml "${small[@]}" train.epochs=$epochs data.train_samples=3000
  code=0
  env LD_PRELOAD="$slow" SLOW_DISK_BYTES=100000 "$trainer" full.toml --nproc_per_node 2 --output_dir full > full.log 2>&1 || code=$?
  [ $code = 1 ] || fail "a full disk, $epochs epochs: exit code $code"
  tail -n 1 full.log | grep -q 'rank 0 .*cannot write .*full/checkpoints/.*No space left on device' || fail "a full disk is not told of"
  ! compgen -G 'full/checkpoints/*' || fail "a file that is not whole"
done
