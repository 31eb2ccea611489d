#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# While one host has yet to be looked at, the others have the code already; nothing starts before all are ready, and with the last of
# them the run begins. Where that one turns out to lack something, nothing starts anywhere.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
mkdir tree
cd tree
echo 'the code' >code
has_code() { on h1 test -e tree/code && on h3 test -e tree/code; }
nothing_runs() { for host in 1 3; do expect_equal '' "$(on $host bash -c 'ls /run/screen/S-* 2>/dev/null || true')"; done; }

# Its processes stand still, so its server greets nobody.
fault freeze h2
timeout 60 "$DTOOL" run --json --connect_timeout 40 --runs_on "$DTOOL_LAB_HOSTS" -- bash -c 'cat code; sleep 60' >"$work/run.out" 2>"$work/run.err" </dev/null &
running=$!
eventually 20 has_code
nothing_runs
on h1 test -d .dtool/runs
fault thaw h2
expect_ended 0 "$running"
grep -q '"run_id"' "$work/run.out" || fail "the run was not told: $(cat "$work/run.out" "$work/run.err")"
for host in 1 2 3; do expect_equal 'the code' "$(on $host cat tree/code)"; done
expect_exit 0 dtool kill --yes --delete

echo 'other code' >code
for host in 1 2 3; do on $host touch activate; done
fault hide h2 tail
expect_exit 2 timeout 60 "$DTOOL" run --env_activate_path /root/activate --runs_on "$DTOOL_LAB_HOSTS" -- bash -c 'cat code; sleep 60'
expect_error "^  ${address[1]}: tail is not there"
expect_error 'nothing was started'
nothing_runs
for host in 1 2 3; do expect_equal '' "$(on $host bash -c 'ls -A .dtool/runs 2>/dev/null || true')"; done
