#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A run that dtool 0.1.0 recorded is listed, asked about and ended by this version.
source "$(dirname "$0")/harness.sh"

killfiles=$HOME/.dtool/killfiles
mkdir -p -m 700 "$killfiles"
old=$source_folder/tests/unit/killfiles/killfile_of_0.1.0.toml
run=sleep_20261120-101112-aabbcc
# Its host is this machine, where nothing of it is left.
sed 's/^host = .*/host = "local"/' "$old" >"$killfiles/$run.killfile"

expect_exit 0 dtool list --utc
expect_output "^$run  2026-11-20T10:11:12Z +[0-9]+ d ago +1  local +[^ ]"
expect_exit 0 dtool list --json
expect_equal "$run sleep 1 local" "$(json '"{run_id} {what} {machines} {hosts}".format(**d["runs"][0])')"
expect_exit 0 dtool list --state
expect_output "^$run  2026-11-[0-9: -]+  [0-9]+ d ago +[a-z]+ +1  local +[^ ]"
run dtool status "$run" --json
expect_equal "$run" "$(json 'd["run_id"]')"

# The host has the run's folder, and nothing of the run is left.
mkdir -p "$HOME/.dtool/runs/$run/machine0"
expect_exit 0 dtool kill "$run" --delete
expect_exit 0 dtool list --json
expect_equal '[]' "$(json 'd["runs"]')"
