#!/bin/bash
# SPDX-License-Identifier: MIT
# Two ranks with half of the samplers each see the same episodes as one rank with all of them and learn the same, where
# no rollout is cut short: the same losses, entropies and rewards, within rounding. So does one rank whose samplers step
# on threads of their own.
. "$(dirname "$0")/harness.sh"
# experiment FILE SAMPLERS RATE: the pipeline raises the rate with the square root of the ranks, so two ask for less.
experiment() {
  cat > "$1" << END
workload = "objectnav"
environment = {samplers = $2, step_limit = 30}
model = {embedding = 16, hidden = 24}
optimizer = {learning_rate = $3}
ppo = {num_steps = 16, num_mini_batch = 4, update_repeats = 3, preemption_share = 1.0}
pipeline = {steps = 2048, small_batch_steps = 0, transition_steps_per_node = 0}
validation = {every_steps = 512, episodes = 11}
logging = {every_steps = 1}
END
}
experiment one.toml 16 1e-3
experiment two.toml 8 0.0007071067811865475
sed 's/samplers = 16/samplers = 16, threads = 2/' one.toml > threads.toml
experiment other.toml 8 0.0007171067811865475
"$trainer" one.toml --nproc_per_node 1 --seed 7 --output_dir one > one.log 2>&1 || fail "one rank"
"$trainer" two.toml --nproc_per_node 2 --seed 7 --output_dir two > two.log 2>&1 || fail "two ranks"
"$trainer" threads.toml --nproc_per_node 1 --seed 7 --output_dir threads > threads.log 2>&1 || fail "one rank with threads"
"$trainer" other.toml --nproc_per_node 2 --seed 7 --output_dir other > other.log 2>&1 || fail "another rate"

# alike KEY A B: eight lines each, nowhere apart by more than a hundred thousandth of the largest.
alike() {
  paste <(metric "$2" step "$1") <(metric "$3" step "$1") |
    awk '{ d = $1 - $2; d = d < 0 ? -d : d; if (d > worst) worst = d; a = $1 < 0 ? -$1 : $1; if (a > most) most = a; n++ }
         END { exit n != 8 || worst > 1e-5 * most }'
}
for key in step loss value_loss entropy train_reward episode_steps learning_rate; do
  for other in two threads; do
    alike $key one $other || fail "$key: $(metric one step $key) and $(metric $other step $key)"
  done
done
[ "$(metric one validation validation_spl)" = "$(metric two validation validation_spl)" ] || fail "other validation"
! alike loss one other || fail "another learning rate makes no difference"
