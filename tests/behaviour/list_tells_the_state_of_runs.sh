#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool list` reads what is recorded and reaches nobody; with --state it asks every host once, however many runs are on it, says how
# each run is, and does not wait for long for a host that is cut off.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program python3
lab 3
connects_anew
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
touch code
start() { expect_exit 0 dtool run --quiet --runs_on "$1" --extra_tag "${@:2}"; }
start "$DTOOL_LAB_HOSTS" well -- true
# shellcheck disable=SC2016
start "$DTOOL_LAB_HOSTS" badly -- bash -c 'exit $((RANK == 1 ? 3 : 0))'
start "$DTOOL_LAB_HOSTS" ended -- sleep 300
expect_exit 0 dtool kill sleep_ended
start "$DTOOL_LAB_HOSTS" goes -- sleep 300
start "${address[2]}" alone -- sleep 300
start local here -- sleep 300
at_end 'dtool kill --all --yes --delete >/dev/null 2>&1'

# expect_state TAG STATE
expect_state() {
  local line
  line=$(grep "_$1_" "$out")
  [[ $line =~ \ (ago|now)\ +$2\ \  ]] || fail "not '$2': $line"
}
logins() { cat "$DTOOL_LAB_FOLDER"/host*/sshd.log | grep -c '^Accepted publickey' || true; }

before=$(logins)
expect_exit 0 dtool list no_run_has_this
expect_error '^no run that is recorded in .*/killfiles matches no_run_has_this; dtool list alone shows all$'
expect_exit 0 dtool list
expect_no_output 'running'
expect_equal "$before" "$(logins)"

has_ended() {
  expect_exit 0 dtool list --state
  expect_state well ended
  expect_state badly '1 of 3 failed, 2 ended'
}
eventually 30 has_ended
before=$(logins)
expect_exit 0 dtool list --state
expect_equal $((before + 3)) "$(logins)"
expect_state ended killed
expect_state goes running
expect_state alone running
expect_state here running
expect_equal 7 "$(grep -c . "$out")"

# A terminal gets rows of one line.
script -qec "stty cols 80; '$DTOOL' list --state 2>/dev/null" /dev/null </dev/null >"$out"
tr -d '\r' <"$out" | sed 's/\x1b\[[0-9;]*m//g; s/…/./' >"$work/rows"
expect_equal 7 "$(grep -c . "$work/rows")"
expect_equal '' "$(awk 'length($0) > 80' "$work/rows")"
expect_exit 0 dtool list --prune --connect_timeout 9

# One host is cut off, another has lost a session.
# shellcheck disable=SC2016
on h3 bash -c 'kill -KILL "$(cut -d" " -f1 ~/.dtool/runs/*_alone_*/machine0/process)"'
fault cut h1
expect_exit 1 timeout 60 "$DTOOL" list --state
expect_state goes '2 of 3 running, 1 unreachable'
expect_state alone lost
expect_error '1 of 4 hosts failed: asking for the states of the runs'
expect_error "${address[0]}: no answer"
expect_exit 1 timeout 60 "$DTOOL" list --state --connect_timeout 2 --json
expect_equal "{'running': 2, 'unreachable': 1}" "$(json 'next(r["states"] for r in d["runs"] if "_goes_" in r["run_id"])')"
expect_equal "${address[0]} connect_timed_out" "$(json '" ".join([d["failures"][0]["host"], d["failures"][0]["failure"]])')"
fault mend h1

# Flags about hosts mean nothing unless they are asked.
expect_exit 2 dtool list --connect_timeout 2
expect_error '--connect_timeout goes with --state or --prune'
