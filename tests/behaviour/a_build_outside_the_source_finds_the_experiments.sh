#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The experiments are inside dtool, also where it is built in a folder outside the source: it needs neither that folder nor the source.
# Only the object that holds them is built there, since ccache knows no object of another build folder, and all would take minutes.
source "$(dirname "$0")/harness.sh"
for program in cmake ninja python3; do needs_program $program; done

expect_exit 0 cmake -S "$source_folder" -B "$work/elsewhere" -G Ninja -Wno-dev -DDTOOL_TRAINER=OFF -DDTOOL_TESTS=OFF -DDTOOL_UNITY=OFF
object=CMakeFiles/dtool_cli.dir/cli/plan/experiment.cpp.o
compile=$(python3 -c 'import json, sys; print(*[each["command"] for each in json.load(open(sys.argv[1])) if each["file"].endswith("cli/plan/experiment.cpp")])' \
  "$work/elsewhere/compile_commands.json")
mkdir -p "$work/elsewhere/$(dirname "$object")"
expect_exit 0 timeout 150 bash -c "cd '$work/elsewhere' && $compile"
expect_equal '' "$(ls -A)"

# dtool away from its build folder, in an empty one.
cp "$DTOOL" "$work/moved"
for file in "$source_folder"/trainer/experiments/*.toml; do
  name=$(basename "$file" .toml)
  grep -qF "$(grep -m 1 '^# ' "$file")" "$work/elsewhere/$object" || fail "$object lacks $name"
  expect_exit 0 "$work/moved" run "$name" --dry_run
  expect_output "dtool-trainer with the experiment $name"
done
