#!/bin/bash
# SPDX-License-Identifier: MIT
# Three ranks, one of which is stopped most of the time: once two have finished their rollouts, its own is cut short, and
# the steps are counted as they were taken. Without preemption all wait. A killed rank ends all three, and a run that is over ends, whichever rank is the
# first to notice.
. "$(dirname "$0")/harness.sh"
samplers=8 steps=64
cat > e.toml << END
workload = "objectnav"
environment = {samplers = $samplers}
model = {embedding = 16, hidden = 24}
ppo = {num_steps = $steps, preemption_share = 0.6, least_rollout_share = 0.25}
pipeline = {steps = 100000000, rollouts = "whole"}
validation = {every_steps = 0}
checkpoint = {every_steps = 0}
logging = {every_steps = 1}
END
sed 's/preemption_share = 0.6/preemption_share = 1.0/' e.toml > patient.toml

begin() {  # NAME
  "$trainer" "$1.toml" --nproc_per_node 3 --seed 1 --output_dir "$1" > "$1.log" 2>&1 &
  run=$!
  started+=("$run")
  await 60 "training" is_training "$1.log"
  slow=$(worker_of "$run" 2)
}
hinder() {  # for a while
  for _ in {1..10}; do
    kill -STOP "$slow"
    sleep 0.1
    kill -CONT "$slow"
    sleep 0.04
  done
}
# counts NAME: of the updates, how many were cut short and how many not; fails where the steps are not what that means.
counts() {
  mkdir -p seen && grep '}$' "$1/metrics.jsonl" > seen/metrics.jsonl  # it grows: one look for both
  paste <(metric seen step step) <(metric seen step cut_short) |
    awk -v samplers=$samplers -v steps=$steps '
      { taken = $1 - before; before = $1; full = 3 * samplers * steps; least = samplers * (2 * steps + steps / 4) }
      $2 == 0 && taken != full { print "full, but", taken; exit 1 }
      $2 > 0 && $2 < 0.4 && (taken < least || taken >= full || taken % samplers) { print "cut short, but", taken; exit 1 }
      $2 == 0 { whole++ }
      $2 > 0 { cut++ }
      END { print cut + 0, whole + 0 }'
}

enough_are_cut() {
  hinder
  counts e > counts.log || fail "the steps are not those that were taken: $(cat counts.log)"
  read -r cut _ < counts.log
  [ "$cut" -ge 5 ]
}
begin e
await 90 "five rollouts cut short" enough_are_cut
kill -KILL "$slow"
await_exit "$run" 2> /dev/null
[ "$code" = 1 ] || fail "after a rank was killed the exit code is $code"
tail -n 1 e.log | grep -q 'rank 2 .*signal 9' || fail "no cause"

begin patient
hinder
counts patient > counts.log || fail "the steps are not those that were taken: $(cat counts.log)"
read -r cut _ < counts.log
[ "$cut" = 0 ] || fail "$cut rollouts were cut short without preemption"
kill -TERM "$run"
await_exit "$run" 2> /dev/null

# What a rank says when it ends must not leave another waiting for more: an hour, here.
sed 's/samplers = .*/samplers = 1, step_limit = 1}/; s/num_steps = [0-9]*, preemption_share = 0.6/num_steps = 1, preemption_share = 0.3/
  s/100000000/300/' e.toml > short.toml
printf '[distributed]\ncollective_timeout_seconds = 3600\n' >> short.toml
for _ in 1 2 3; do
  timeout 60 "$trainer" short.toml --nproc_per_node 3 --output_dir short > short.log 2>&1 || fail "a run that is over does not end: exit code $?"
done
