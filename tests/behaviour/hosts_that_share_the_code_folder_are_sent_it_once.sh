#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Hosts that see one and the same code folder, but have homes of their own, do not send into it at once: one is sent the tree, the others wait and
# find it there.
source "$(dirname "$0")/harness.sh"
needs_isolation
as_root
lab 4
folder=$work/shared  # hosts see this machine's /tmp
mkdir "$folder"

for round in 1 2 3; do
  for ((i = 0; i < 100; i++)); do echo "$round $RANDOM" >file$i; done
  rm -f gone*
  echo gone >gone$round
  wanted=$(cat file* gone* | sha256sum)
  expect_exit 0 timeout 100 "$DTOOL" run --follow --runs_on "$DTOOL_LAB_HOSTS" --code_path "$folder/code" -- bash -c 'cat file* gone* | sha256sum'
  for id in 0 1 2 3; do expect_output "^machine$id: $wanted$"; done
  expect_equal '' "$(find "$folder/code" -name '.~*')"
done
expect_exit 0 dtool kill --all --yes --delete
