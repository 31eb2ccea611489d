#!/bin/bash
# SPDX-License-Identifier: MIT
# Half a million steps in small houses: from hardly any success to a quarter of the episodes and more, in houses never seen.
. "$(dirname "$0")/harness.sh"
cat > e.toml << 'END'
workload = "objectnav"
environment = {least_side = 9, most_side = 10, most_rooms = 2, step_limit = 100}
model = {embedding = 32, hidden = 64}
optimizer = {learning_rate = 1e-3}
ppo = {num_mini_batch = 4}
pipeline = {steps = 500000, small_batch_steps = 0}
validation = {every_steps = 0, episodes = 200}
logging = {every_steps = 10000}
END
"$trainer" e.toml --seed 1 --output_dir out > out.log 2>&1 || fail "exit code $?"
first=$(metric out step train_success | head -n 1)
last=$(metric out validation validation_success | tail -n 1)
awk -v first="$first" -v last="$last" 'BEGIN { exit !(first < 0.1 && last > 0.25) }' || fail "success went from $first to $last"
[ "$(tail -n 1 out.log)" = "validation success $(printf %.4f "$last")" ] || fail "the last line is another"
