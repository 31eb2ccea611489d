#!/bin/bash
# SPDX-License-Identifier: MIT
# dtool-trainer rollout plays an episode and draws it, in the terminal or as a file: the same one each time, and with a
# checkpoint the one that validation has played.
. "$(dirname "$0")/harness.sh"
cat > e.toml << 'END'
workload = "objectnav"
environment = {samplers = 8, step_limit = 30, least_side = 9, most_side = 9, success_distance = 2.0, least_start_distance = 0.5}
model = {embedding = 16, hidden = 24}
ppo = {num_steps = 16, num_mini_batch = 2}
pipeline = {steps = 8192, small_batch_steps = 0, transition_steps_per_node = 0}
validation = {every_steps = 0, episodes = 8, seed = 4}
checkpoint = {every_steps = 4096}
END
"$trainer" rollout e.toml --episode 3 > text.log || fail "as text: exit code $?"
for what in '^Episode 3 in validation houses, seed 4; actions by the shortest path$' '^##########' 'seen, looking' '## wall, + door' \
  '^success after [0-9]* steps, .* SPL 1.00, reward'; do
  grep -q -- "$what" text.log || fail "the text lacks '$what'"
done
"$trainer" rollout objectnav > shipped.log || fail "an experiment that ships: exit code $?"
grep -q '^Episode 0 in validation houses' shipped.log || fail "no episode of objectnav: $(cat shipped.log)"
"$trainer" rollout e.toml --episode 4 > other.log || fail "another episode: exit code $?"
! cmp -s text.log other.log || fail "two episodes are alike"
"$trainer" rollout e.toml --episode 3 --seed 5 > other.log || fail "another seed: exit code $?"
! cmp -s text.log other.log || fail "two seeds are alike"
"$trainer" rollout e.toml --episode 3 --set training --seed 4 > other.log || fail "training houses: exit code $?"
! cmp -s text.log other.log || fail "training and validation houses are alike"

"$trainer" rollout e.toml --episode 3 --output one.svg > svg.log || fail "as SVG: exit code $?"
grep -q '^one.svg: success after' svg.log || fail "the file's line lacks how it ended"
python3 -c 'import sys, xml.etree.ElementTree as xml; sys.exit(xml.parse("one.svg").getroot().tag != "{http://www.w3.org/2000/svg}svg")' ||
  fail "one.svg is no SVG"
"$trainer" rollout e.toml --episode 3 --format svg > two.svg || fail "SVG on standard output: exit code $?"
cmp one.svg two.svg || fail "the same episode is drawn otherwise"
mkfifo pipe
timeout 20 cat pipe > three.svg &
"$trainer" rollout e.toml --episode 3 --output pipe --format svg > pipe.log || fail "into a pipe: exit code $?"
wait $!
[ -p pipe ] || fail "a file took the place of a pipe"
cmp one.svg three.svg || fail "what comes through a pipe is drawn otherwise"

steps=$(sed -n 's/^success after \([0-9]*\) steps.*/\1/p' text.log)
"$trainer" rollout e.toml --episode 3 --watch > watch.log || fail "--watch: exit code $?"
[ "$(grep -c '^step [0-9]*: ' watch.log)" = "$steps" ] || fail "--watch shows other steps than there are"
tail -n 1 watch.log | cmp - <(tail -n 1 text.log) || fail "--watch ends otherwise"

"$trainer" rollout e.toml --policy random --output random.svg > random.log || fail "random: exit code $?"
"$trainer" rollout e.toml --policy random --output random.svg | cmp - random.log || fail "chance is another each time"

"$trainer" rollout e.toml --episode 3 --policy oracle | cmp - text.log || fail "oracle is another policy than shortest"
# success POLICY: its share of 400 episodes.
success() {
  "$trainer" rollout e.toml --policy "$1" --episodes 400 > "many.$1.log" || fail "$1 in many episodes: exit code $?"
  head -n 1 "many.$1.log" | grep -q '^400 episodes in validation houses, seed 4; actions by ' || fail "$1: the line lacks what was played"
  sed -n 's/^success \([0-9.]*\), SPL [0-9.]*, [0-9.]* steps an episode$/\1/p' "many.$1.log"
}
awk -v random="$(success random)" -v wander="$(success wander)" -v doors="$(success doors)" -v oracle="$(success oracle)" \
  'BEGIN { exit !(random + 0.1 < wander && wander < oracle && random + 0.1 < doors && doors < oracle && oracle == 1) }' ||
  fail "the policies do not succeed in their order: $(tail -qn 1 many.*.log)"

"$trainer" e.toml --output_dir out > out.log 2>&1 || fail "training: exit code $?"
successes=0
for episode in 0 1 2 3 4 5 6 7; do
  "$trainer" rollout e.toml --output_dir out --checkpoint latest --episode $episode > "checkpoint.$episode.log" || fail "the checkpoint: exit code $?"
  grep -q "actions by the network of out/checkpoints/step_" "checkpoint.$episode.log" || fail "the policy has no name"
  if grep -q '^success after' "checkpoint.$episode.log"; then successes=$((successes + 1)); fi
done
"$trainer" rollout e.toml --output_dir out --checkpoint latest --episodes 8 > many.log || fail "a checkpoint's many episodes: exit code $?"
told=$(metric out validation validation_success | tail -n 1)
awk -v told="$told" -v successes=$successes 'BEGIN { exit !(told * 8 == successes) }' ||
  fail "validation tells of $told success, and $successes of its 8 episodes succeed"
awk -v told="$told" '/^success/ { exit !($2 - told < 0.001 && told - $2 < 0.001) }' many.log || fail "validation tells of $told success, and --episodes of $(cat many.log)"

# The same with an agent that sees pictures.
sed 's/least_side = 9/observation = "rgbd", least_side = 9/; s/steps = 8192/steps = 1024/; s/every_steps = 4096/every_steps = 1024/' e.toml > pictures.toml
"$trainer" pictures.toml --output_dir looked > looked.log 2>&1 || fail "training with pictures: exit code $?"
"$trainer" rollout pictures.toml --output_dir looked --checkpoint latest --episodes 8 > many.log || fail "an agent with pictures: exit code $?"
told=$(metric looked validation validation_success | tail -n 1)
awk -v told="$told" '/^success/ { exit !($2 - told < 0.001 && told - $2 < 0.001) }' many.log || fail "validation tells of $told success, and --episodes of $(cat many.log)"
"$trainer" rollout pictures.toml --output_dir looked --checkpoint latest --output looked.html | grep -q '^looked.html: ' || fail "no page"
