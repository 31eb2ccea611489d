#!/bin/bash
# SPDX-License-Identifier: MIT
# TensorBoard's event files, read by a reader of their format that shares no code with their writer: whole records
# with right checksums, the numbers of metrics.jsonl, at most one half record after SIGKILL, and a resumed run that
# takes back what the killed one told of the steps after the checkpoint.
. "$(dirname "$0")/harness.sh"
python=/usr/bin/python3
reader=$(dirname "$0")/read_events.py
[ -f "$reader" ] || reader=$OLDPWD/$reader
[ -x $python ] || { [ -z "${CI:-}" ] || fail 'python3 is not installed: tests/dependencies test'; echo 'SKIPPED: needs python3'; exit 77; }
events() { $python "$reader" "$1"; }

common=(data.train_samples=2000 data.test_samples=300 logging.every_steps=7)
digits_experiment two.toml train.epochs=2 "${common[@]}"
digits_experiment off.toml train.epochs=1 "${common[@]}" logging.tensorboard=false
"$trainer" two.toml --output_dir out --nproc_per_node 2 > two.log 2>&1 || fail "exit code $?"
files=(out/tensorboard/events.out.tfevents.*)
[ ${#files[@]} = 1 ] || fail "not one event file: ${files[*]}"
[[ ${files[0]} =~ /events\.out\.tfevents\.[0-9]{10}\..+\.[0-9]+\.0$ ]] || fail "TensorBoard would not know ${files[0]}"
events "${files[0]}" > read.log || fail "the events cannot be read"
[ "$(head -n 2 read.log)" = $'0 version brain.Event:2\n1 start' ] || fail "the file does not begin as it should"

# The same numbers as metrics.jsonl, as 32-bit floating point.
$python - out/metrics.jsonl read.log > compare.log 2>&1 << 'COMPARE' || fail "metrics.jsonl and the events differ"
import json, struct, sys
wanted = []
for line in open(sys.argv[1]):
    line = json.loads(line)
    for key, value in line.items():
        if key not in ("event", "time", "epoch", "step", "seed", "world_size"):
            single = struct.unpack("f", struct.pack("f", value))[0]
            wanted.append((line["step"], line["event"] + "/" + key, "%.9g" % single))
told = []
for line in open(sys.argv[2]).read().splitlines()[2:]:
    step, *scalars = line.split()
    told += [(int(step), *scalar.split("=")) for scalar in scalars]
assert told == wanted, (told, wanted)
tags = {tag for _, tag, _ in told}
assert {"step/loss", "step/samples_per_s", "epoch/loss", "epoch/learning_rate", "epoch/test_accuracy"} <= tags, tags
COMPARE

# A byte that changed is found, wherever it is.
size=$(stat -c %s "${files[0]}")
for offset in 0 9 20 $((size / 2)) $((size - 1)); do
  $python - "${files[0]}" "$offset" << 'FLIP' > flipped
import sys
content = bytearray(open(sys.argv[1], "rb").read())
content[int(sys.argv[2])] ^= 4
sys.stdout.buffer.write(content)
FLIP
  ! events flipped > flipped.log 2>&1 || fail "the changed byte $offset was not found"
done

"$trainer" off.toml --output_dir off > off.log 2>&1 || fail "logging.tensorboard=false: exit code $?"
[ ! -e off/tensorboard ] || fail "logging.tensorboard=false wrote events"

# Killed between two checkpoints, with log points after the first.
digits_experiment long.toml train.epochs=100000 checkpoint.every_epochs=3 "${common[@]}"
"$trainer" long.toml --output_dir killed > killed.log 2>&1 &
supervisor=$!
started+=("$supervisor")
await 60 "a checkpoint and an epoch after it" eval '[ -e killed/checkpoints ] && [ -n "$(ls killed/checkpoints)" ] && sleep 0.3'
worker=$(worker_of "$supervisor" 0)
kill -KILL "$supervisor"
await_exit "$supervisor"
await 10 "the worker's end" has_ended "$worker"
[ "$(tail -c 1 killed/metrics.jsonl | od -An -tx1)" = ' 0a' ] || fail "half a line in metrics.jsonl"
first=(killed/tensorboard/events.out.tfevents.*)
code=0
events "${first[0]}" > killed-events.log || code=$?
[ $code = 0 ] || { [ $code = 3 ] && [ "$(tail -n 1 killed-events.log)" = 'half record' ]; } || fail "the killed run's events: exit code $code"
[ "$(grep -c step/loss killed-events.log)" -gt 10 ] || fail "the killed run told too little"

# Resumed: another file, whose beginning makes the steps after the checkpoint void.
sleep 1
checkpoints=(killed/checkpoints/step_*.safetensors)
checkpoint=${checkpoints[-1]}
steps=$((10#${checkpoint//[^0-9]/}))
epoch=$((steps / 32))  # of 2000 samples in batches of 64
digits_experiment rest.toml train.epochs=$((epoch + 1)) "${common[@]}"
"$trainer" rest.toml --output_dir killed --checkpoint "$checkpoint" > rest.log 2>&1 || fail "resuming: exit code $?"
files=(killed/tensorboard/events.out.tfevents.*)
[ ${#files[@]} = 2 ] || fail "not two event files: ${files[*]}"
[ "${files[0]}" = "${first[0]}" ] || fail "the names do not sort by age: ${files[*]}"
events "${files[1]}" > rest-events.log || fail "the resumed run's events cannot be read"
[ "$(sed -n 2p rest-events.log)" = "$((steps + 1)) start" ] || fail "the resumed run begins with $(sed -n 2p rest-events.log)"
[ "$(metric killed start step | paste -sd' ')" = "0 $steps" ] || fail "metrics.jsonl begins at $(metric killed start step)"
[ "$(metric killed step step | tail -n 1)" -gt "$steps" ] || fail "the resumed run told nothing"
