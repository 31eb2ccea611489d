#!/bin/bash
# SPDX-License-Identifier: MIT
# With validation.follow a run does not train: it waits for another's checkpoints, gives each the success that the other would have
# found itself, writes it beside the other's metrics, and ends when the other has.
. "$(dirname "$0")/harness.sh"
# experiment FILE [LINE]: two checkpoints, of 1000 and of 2000 steps and some.
experiment() {
  cat > "$1" << END
workload = "objectnav"
environment = {samplers = 8, least_side = 9, most_side = 9, step_limit = 50, success_distance = 2.0, objects = 12}
model = {embedding = 8, hidden = 8}
ppo = {num_steps = 32}
pipeline = {steps = 2000, small_batch_steps = 0}
checkpoint = {every_steps = 1000, keep = 10}
validation = {every_steps = 1000, episodes = 300$2}
END
}
experiment train.toml ''
experiment follow.toml ', follow = "$THEIRS"'
export THEIRS=$PWD/theirs
mkdir theirs
touch follow.log
OMP_NUM_THREADS=1 "$trainer" follow.toml --output_dir ours --nproc_per_node 2 > follow.log 2>&1 &
follower=$!
started+=("$follower")
await 60 'the follower waits' grep -q '^validating the checkpoints in ' follow.log
OMP_NUM_THREADS=1 "$trainer" train.toml --output_dir theirs > train.log 2>&1 || fail 'training'
code=0
wait "$follower" || code=$?
[ $code = 0 ] || fail "the follower ended with $code"

python3 - << 'END' || fail 'the numbers differ'
import json

def validations(file):
    lines = [json.loads(line) for line in open(file)]
    return {line["step"]: (line["validation_success"], line["validation_spl"]) for line in lines if line["event"] == "validation"}, lines

told, _ = validations("theirs/metrics.jsonl")
found, lines = validations("theirs/validation.jsonl")
assert len(told) == 2 and all(success > 0 for success, _ in told.values()), told
assert found == told, (told, found)
assert validations("ours/metrics.jsonl")[0] == told
# The time is the checkpoint's, so a plot over seconds shows when the policy was as good as that.
kept = [json.loads(line) for line in open("theirs/metrics.jsonl")]
for line in lines:
    then = next(each["time"] for each in kept if each["event"] == "validation" and each["step"] == line["step"])
    assert abs(line["time"] - then) < 60, (line, then)
END
[ "$(tail -n 1 follow.log)" = "$(tail -n 1 train.log)" ] || fail 'the last lines differ'

# Nothing comes any more, nothing is there, and what is there is of another network.
rm theirs/checkpoints/step_000002*.safetensors
sed -i 's/follow = /patience_seconds = 1, follow = /' follow.toml
code=0
"$trainer" follow.toml --output_dir ours > follow.log 2>&1 || code=$?
[ $code = 1 ] || fail "exit code $code where no checkpoint comes"
grep -q 'no new checkpoint in $THEIRS for 1 s, the last is of step 1' follow.log || fail 'no word of the wait'
code=0
THEIRS=$PWD/nowhere "$trainer" follow.toml --output_dir ours > follow.log 2>&1 || code=$?
[ $code = 2 ] || fail "exit code $code where there is no folder"
grep -q "validation.follow: there is no folder $PWD/nowhere" follow.log || fail 'the folder is not named'
sed -i 's/hidden = 8/hidden = 16/' follow.toml
code=0
"$trainer" follow.toml --output_dir ours > follow.log 2>&1 || code=$?
[ $code = 2 ] || fail "exit code $code for another network"
