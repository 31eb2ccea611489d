#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A lab whose owner is killed is gone within seconds: processes, links and folder.
source "$(dirname "$0")/harness.sh"

name=owned-$$
bash -c '"$1" up 2 --name "$2" --owner; exec sleep 300' sh "$here/../lab" "$name" >"$work/log" 2>&1 &
owner=$!
is_up() { "$here/../lab" env --name "$name"; }
eventually 20 is_up
eval "$("$here/../lab" env --name "$name")"
line=$(cat "$DTOOL_LAB_FOLDER/host1/pid")

kill -KILL "$owner"
eventually 20 test ! -e "$DTOOL_LAB_FOLDER"
expect_no_file "/proc/${line%%:*}/exe"

# An end that is cut short leaves nothing that the next one does not clear, whenever that happens: also while many files are removed.
labs=$(dirname "$DTOOL_LAB_FOLDER")
for after in 0.1 0.25; do
  expect_exit 0 "$here/../lab" up 1 --name "$name"
  (cd "$labs/$name" && seq -f 'many%.0f' 20000 | xargs touch)
  setsid "$here/../lab" down --name "$name" >/dev/null 2>&1 & down=$!
  sleep "$after"
  kill -KILL -- "-$down" 2>/dev/null || true
  wait "$down" || true
  [[ ! -d $labs/$name ]] || expect_exit 0 "$here/../lab" down --name "$name"
  expect_exit 0 "$here/../lab" up 1 --name "$name"
  expect_exit 0 "$here/../lab" down --name "$name"
  expect_equal '' "$(find "$labs" -maxdepth 1 -name ".gone-$name-*")"
done
