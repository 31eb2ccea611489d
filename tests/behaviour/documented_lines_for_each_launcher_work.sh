#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every `dtool run` line of docs/engines.md is one that dtool takes: it says what it would do, with as many ranks as the text promises.
source "$(dirname "$0")/harness.sh"
printf '%s\n' 'red01 max_slots = 2' 'orange07 max_slots = 1' 'purple11 slots=3' >hosts
touch ddp.py train.py

# A line that ends with a backslash goes on in the next one.
mapfile -t lines < <(sed -n '/^```sh$/,/^```$/p' "$source_folder/docs/engines.md" |
  sed ':again; /\\$/ { N; s/\\\n *//; b again }' | sed -n 's/^dtool //p')
((${#lines[@]} >= 12)) || fail "only ${#lines[@]} lines were found"
words=()
for line in "${lines[@]}"; do
  # As a shell reads it.
  eval "words=($line)"
  expect_exit 0 dtool "${words[0]}" --dry_run "${words[@]:1}"
  expect_output '^machine 0 '
  [[ ! $line =~ --n(tasks|proc)_per_node\ ([0-9]+) ]] || expect_output "^processes +${BASH_REMATCH[2]} a machine"
done
