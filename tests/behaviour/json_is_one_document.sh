#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# With --json, standard output is one JSON document and nothing else, also where logs are followed.
source "$(dirname "$0")/harness.sh"
needs_program python3

mkdir code
echo 'echo a line of the log' >code/train.sh
cd code

is_one_document() {
  python3 -m json.tool "$out" >/dev/null || fail 'stdout is not one JSON document'
}
expect_exit 0 dtool run --follow --json -- bash train.sh
is_one_document
expect_output '^  "exit_code": 0,$'
expect_error '^machine0: a line of the log$'
run=$(sed -n 's/^  "run_id": "\(.*\)",$/\1/p' "$out")

for words in 'list' 'show' "diff $run $run" 'command --runs_on local --command true' 'trust --runs_on local' 'check --no_trainer --runs_on local' "run --dry_run $source_folder/trainer/experiments/digits.toml" "kill $run --delete"; do
  # shellcheck disable=SC2086
  expect_exit 0 dtool $words --json
  is_one_document
done
