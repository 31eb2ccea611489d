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
