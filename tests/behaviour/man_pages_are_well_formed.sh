#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The build's man pages say what --help says, and neither man nor mandoc has anything to say against them.
source "$(dirname "$0")/harness.sh"

pages=$(dirname "$DTOOL")/man
expect_file "$pages/dtool.1"
expect_exit 0 dtool __complete ''
mapfile -t commands < <(cut -f 1 "$out")
((${#commands[@]} >= 7)) || fail "commands: ${commands[*]}"
for command in "${commands[@]}"; do
  expect_file "$pages/dtool-$command.1"
  expect_exit 0 dtool "$command" --help all
  mapfile -t flags < <(grep -Eo -- '--[a-z_]+' "$out" | sort -u)
  ((${#flags[@]})) || fail 'no flag in this help'
  for flag in "${flags[@]}"; do
    grep -qF -- "${flag//-/\\-}" "$pages/dtool-$command.1" || fail "dtool-$command.1 has no $flag"
  done
done
needs_program man
for page in "$pages"/*.1; do
  expect_exit 0 env LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$page"
  expect_no_error .
  expect_output '^NAME$'
done
needs_program mandoc
expect_exit 0 mandoc -T lint -W warning "$pages"/*.1
expect_no_output .
