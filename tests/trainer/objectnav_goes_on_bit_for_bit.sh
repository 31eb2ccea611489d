#!/bin/bash
# SPDX-License-Identifier: MIT
# ObjectNav's checkpoints hold the samplers of all ranks and what the policy remembers of their episodes: a run that was
# terminated, or killed, and resumed ends with the same bytes as one that was never stopped. On other
# numbers of ranks the samplers go on that there are, and with another seed all begin new episodes.
. "$(dirname "$0")/harness.sh"
cat > e.toml << 'END'
workload = "objectnav"
environment = {samplers = 8, step_limit = 40}
model = {embedding = 16, hidden = 24}
ppo = {num_steps = 16, num_mini_batch = 2, preemption_share = 1.0, normalise_returns = true}
pipeline = {steps = 49152, small_batch_steps = 24000, transition_steps_per_node = 2000, rollout_steps = [8, 16]}
validation = {every_steps = 16384, episodes = 9}
checkpoint = {every_steps = 8192, keep = 100}
logging = {every_steps = 1024}
END
last=step_000049152.safetensors
run=("$trainer" e.toml --nproc_per_node 2 --seed 3)
"${run[@]}" --output_dir whole > whole.log 2>&1 || fail "the whole run: exit code $?"
grep -q '^stage 1 of 2: rollouts of 8 steps' whole.log && grep -q '^stage 2 of 2: rollouts of 16 steps' whole.log || fail "no two stages"
same_end() { cmp "whole/checkpoints/$last" "$1/checkpoints/$last" || fail "$1 ended otherwise"; }
lines() { metric "$1" step train_reward; }

"${run[@]}" --output_dir again --checkpoint whole/checkpoints/step_000008192.safetensors > again.log 2>&1 || fail "from a checkpoint: exit code $?"
same_end again
[ "$(lines again)" = "$(lines whole | tail -n "$(lines again | wc -l)")" ] || fail "the resumed run tells of other episodes"

told() { grep -Eq "^checkpoint written: step [0-9]+, since $2 came$" "$1.log"; }
for signal in USR1 TERM KILL; do
  rank=0
  [ $signal != USR1 ] || rank=1
  "${run[@]}" --output_dir $signal > $signal.log 2>&1 &
  pid=$!
  started+=("$pid")
  await 60 "training" is_training $signal.log
  kill -$signal "$(worker_of "$pid" $rank)"
  [ $signal != USR1 ] || await 60 "the checkpoint" told USR1 SIGUSR1
  kill -TERM "$pid" 2> /dev/null || true
  await_exit "$pid" 2> /dev/null
  [ "$code" != 0 ] || fail "after $signal it ended well"
  [ $signal = KILL ] || told $signal SIGTERM || fail "$signal: TERM kept nothing"
  "${run[@]}" --output_dir $signal --checkpoint auto > $signal.resumed.log 2>&1 || fail "after $signal: exit code $?"
  same_end $signal
done

# So does an agent that sees pictures, in houses with noise.
sed 's/step_limit = 40/step_limit = 40, observation = "rgbd", action_noise = 0.2, of_a_class = 2/; s/steps = 49152/steps = 4096/
    s/small_batch_steps = 24000, transition_steps_per_node = 2000/small_batch_steps = 2000, transition_steps_per_node = 200/; s/every_steps = 8192/every_steps = 2048/' e.toml > pictures.toml
looking=("$trainer" pictures.toml --nproc_per_node 2 --seed 3)
"${looking[@]}" --output_dir looked > looked.log 2>&1 || fail "with pictures: exit code $?"
"${looking[@]}" --output_dir resumed --checkpoint looked/checkpoints/step_000002048.safetensors > resumed.log 2>&1 ||
  fail "with pictures, from a checkpoint: exit code $?"
cmp looked/checkpoints/step_000004096.safetensors resumed/checkpoints/step_000004096.safetensors ||
  fail "with pictures, the resumed run ended otherwise"

on() {  # RANKS SEED NAME
  "$trainer" e.toml --nproc_per_node "$1" --seed "$2" --output_dir "$3" --checkpoint whole/checkpoints/step_000040960.safetensors \
    > "$3.log" 2>&1 || fail "$3: exit code $?"
}
goes_on() {  # NAME COUNT
  grep -q "^note: $2 samplers go on from the checkpoint, the others begin new episodes$" "$1.log" || fail "$1: not $2 samplers go on"
}
on 1 3 one
! grep -q 'begin new episodes' one.log || fail "one rank begins new episodes"
on 3 3 three
goes_on three '16 of 24'
on 2 4 elsewhere
goes_on elsewhere '0 of 16'
