#!/bin/bash
# SPDX-License-Identifier: MIT
# Every mistake in the flags of dtool-trainer rollout: exit code 2, one message that names it, and nothing shown or written.
. "$(dirname "$0")/harness.sh"
echo 'workload = "objectnav"' > e.toml
digits_experiment digits.toml
echo 'no checkpoint' > broken.safetensors

# refused PATTERN HINT ARGUMENT...: HINT may be empty.
refused() {
  local pattern=$1 hint=$2 code=0
  shift 2
  "$trainer" rollout "$@" > out.log 2> err.log || code=$?
  [ $code = 2 ] || fail "$*: exit code $code"
  [ "$(grep -c '^dtool-trainer: ' err.log)" = 1 ] || fail "$*: not one message"
  grep -q -- "^dtool-trainer: .*$pattern" err.log || fail "$*: the message lacks '$pattern'"
  if [ -n "$hint" ]; then grep -q -- "^hint: .*$hint" err.log || fail "$*: the hint lacks '$hint'"; fi
  [ ! -s out.log ] || fail "$*: it showed something"
}
refused 'no experiment given' 'dtool-trainer rollout EXPERIMENT.toml'
refused "'more' is one too many" '' e.toml more
refused 'nothing.toml' '' nothing.toml
refused 'digits.toml: .*no episodes' 'reinforcement learning' digits.toml
refused "no 'clever'" 'oracle (or shortest), doors, wander, random and checkpoint' e.toml --policy clever
refused "'test' is neither training nor validation" '' e.toml --set test
refused "'png' is none of text, svg and html" '' e.toml --format png
refused '--episode must be' '' e.toml --episode -1
refused '--episodes must be' '' e.toml --episodes 0
refused '--episodes counts' 'drop --episodes' e.toml --episodes 3 --output e.svg
refused '--episodes counts' 'drop --episodes' e.toml --episodes 3 --watch
refused '--seed must be' '' e.toml --seed x
refused '--checkpoint is for' '--policy checkpoint' e.toml --policy random --checkpoint latest
refused '--watch shows' 'drop --watch' e.toml --watch --output e.svg
refused '--watch shows' 'drop --watch' e.toml --watch --format html
refused '--output: cannot write nowhere/e.svg' '' e.toml --output nowhere/e.svg
refused 'latest: none in experiment_output/checkpoints' '--output_dir' e.toml --policy checkpoint
refused 'no checkpoint at nothing.safetensors' '' e.toml --checkpoint nothing.safetensors
refused 'broken.safetensors' '' e.toml --checkpoint broken.safetensors
refused 'unknown flag --machine_id' 'rollout --help' e.toml --machine_id 0
[ ! -e e.svg ] || fail "a file was written"

"$trainer" rollout --help > help.log || fail "rollout --help: exit code $?"
for flag in policy checkpoint output_dir set seed episode episodes output format watch; do
  grep -q -- "--$flag" help.log || fail "rollout --help lacks --$flag"
done
! grep -q -- '--nproc_per_node\|torchrun' help.log || fail "rollout --help has flags of training"
"$trainer" --help | grep -q 'dtool-trainer rollout' || fail "--help does not tell of rollout"
