#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Commands that run at once share no connection, so that none meets a server's MaxSessions or another's end; what they leave is bounded.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3 --behind
keeps_connections
kept() { find "$HOME/.dtool/connections" -type s | wc -l; }

# Twelve at once, where the server lets one connection do ten things at a time.
fault restart-sshd h1 -o MaxSessions=10
expect_exit 0 dtool command --runs_on h1 --command true
pids=()
for ((i = 1; i <= 12; i++)); do
  "$DTOOL" command --runs_on h1 --command "sleep 1; echo answer $i" >"$work/out$i" 2>"$work/err$i" &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || fail "one of twelve failed: $(cat "$work"/err*)"; done
expect_equal 12 "$(cat "$work"/out* | grep -c '^h1: answer ')"
# One a command at most, and no more than four stay.
(($(kept) >= 1 && $(kept) <= 4)) || fail "$(kept) connections are kept"
before=$(logins)
expect_exit 0 dtool command --runs_on h1 --command true
expect_equal "$before" "$(logins)"

# A time-out of one command leaves the others alone, though both were started over kept connections.
"$DTOOL" command --runs_on h1 --command 'sleep 3; echo whole' >"$out" 2>"$err" &
pid=$!
eventually 10 on 1 pgrep -f 'sleep 3'
expect_equal 1 "$({ dtool command --quiet --runs_on h1 --timeout 1 --command 'sleep 100' || true; } 2>&1 | grep -c 'did not end in time')"
wait "$pid" || fail 'a command was ended with another'
expect_output '^h1: whole$'

# A connection in use is not taken away by disconnect.
: >"$out"
"$DTOOL" command --runs_on h1 --command 'echo begun; until [ -e go ]; do sleep 0.1; done; echo whole' >"$out" 2>"$err" &
pid=$!
eventually 10 grep -q begun "$out"
dtool disconnect >"$work/said" 2>&1
grep -q '^1 connection in use by commands that run, and closed after them: h1$' "$work/said" || fail "disconnect said: $(cat "$work/said")"
on 1 touch go
wait "$pid" || fail 'the command lost its connection'
expect_output '^h1: whole$'
eventually 10 no_keeper_is_left

# Behind a jump host: its session is kept with theirs, and its key counts as theirs does.
expect_exit 0 dtool command --runs_on h2,h3 --command hostname
before=$(logins)
expect_exit 0 dtool command --runs_on h2,h3 --command hostname
expect_output '^h3: lab-.*-3$'
expect_equal "$before" "$(logins)"
grep -v '^h1,' "$HOME/.ssh/known_hosts" >"$work/known_hosts"
cp "$work/known_hosts" "$HOME/.ssh/known_hosts"
expect_exit 1 dtool command --runs_on h2,h3 --command hostname
expect_error 'jump host h1: the host key is not in'
