#!/bin/bash
# SPDX-License-Identifier: MIT
# Two ranks with half of the samplers each see the same episodes as one rank with all of them and learn the same, where
# no rollout is cut short: the same losses, entropies and rewards, within rounding. So do two and three ranks that share
# their machine's samplers, and one rank whose samplers step on threads of their own.
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
# The machine is the node of the pipeline here, so the rate is the same on any number of its ranks. 11 samplers are 6 and 5, or
# 4, 4 and 3: no ranks' mini-batches are equally large, and of three ranks one may have no sampler in one.
sed 's/samplers = 16/samplers_per_machine = 16/' one.toml > shared.toml
sed 's/samplers = 16/samplers_per_machine = 11/; s/num_mini_batch = 4/num_mini_batch = 3/' one.toml > eleven.toml
experiment other.toml 8 0.0007171067811865475
"$trainer" one.toml --nproc_per_node 1 --seed 7 --output_dir one > one.log 2>&1 || fail "one rank"
"$trainer" two.toml --nproc_per_node 2 --seed 7 --output_dir two > two.log 2>&1 || fail "two ranks"
for ranks in 1 2 3; do
  "$trainer" shared.toml --nproc_per_node $ranks --seed 7 --output_dir shared$ranks > shared$ranks.log 2>&1 || fail "$ranks ranks share"
  "$trainer" eleven.toml --nproc_per_node $ranks --seed 7 --output_dir eleven$ranks > eleven$ranks.log 2>&1 || fail "$ranks ranks share 11"
done
cmp one/checkpoints/best.safetensors shared1/checkpoints/best.safetensors || fail "one rank with its machine's samplers differs"
"$trainer" threads.toml --nproc_per_node 1 --seed 7 --output_dir threads > threads.log 2>&1 || fail "one rank with threads"
"$trainer" other.toml --nproc_per_node 2 --seed 7 --output_dir other > other.log 2>&1 || fail "another rate"

# alike KEY A B: at least eight lines each, equally many, nowhere apart by more than a hundred thousandth of the largest.
alike() {
  paste <(metric "$2" step "$1") <(metric "$3" step "$1") |
    awk '{ d = $1 - $2; d = d < 0 ? -d : d; if (d > worst) worst = d; a = $1 < 0 ? -$1 : $1; if (a > most) most = a; n++ }
         END { exit n < 8 || worst > 1e-5 * most }'
}
for key in step loss value_loss entropy train_reward episode_steps learning_rate; do
  for other in two threads shared1 shared2 shared3; do
    alike $key one $other || fail "$key: $(metric one step $key) and $(metric $other step $key)"
  done
  for ranks in 2 3; do
    alike $key eleven1 eleven$ranks || fail "$key: $(metric eleven1 step $key) and $(metric eleven$ranks step $key)"
  done
done
[ "$(metric one validation validation_spl)" = "$(metric two validation validation_spl)" ] || fail "other validation"
! alike loss one other || fail "another learning rate makes no difference"
