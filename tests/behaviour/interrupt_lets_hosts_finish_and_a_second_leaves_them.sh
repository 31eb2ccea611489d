#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The first SIGINT starts nothing more and waits for those at work; a second one, and TERM, leave at once; all end with 130.
source "$(dirname "$0")/harness.sh"
needs_program jq
lab 4

# In the background a shell ignores SIGINT for its children; env undoes that.
begin() {
  env --default-signal=INT "$DTOOL" "$@" >"$out" 2>"$err" &
  pid=$!
}
ends_with() {
  expect_ended "$1" "$pid"
}

# One at a time: the second has begun, the third and fourth never do.
begin command --width 1 --runs_on 'h[1-4]' --command 'echo begun; touch begun; case $(hostname) in *-2) until [ -e go ]; do sleep 0.1; done ;; esac; echo ended'
eventually 10 grep -q '^h2: begun' "$out"
kill -INT "$pid"
eventually 10 grep -q 'Ctrl-C again' "$err"
on h2 touch go
ends_with 130
expect_output '^h2: ended$'
expect_no_output '^h[34]'
expect_error 'interrupted: nothing more is started; waiting for h2 \(Ctrl-C again leaves them\)'
expect_error '^dtool: 2 of 4 hosts failed'
expect_error '^  h\[3-4\]: interrupted before its turn$'
on h2 test -e begun || fail 'h2 did not begin'
expect_exit 1 on h3 test -e begun

# As a document.
begin command --json --width 1 --runs_on 'h[1-3]' --command 'touch second; sleep 5'
eventually 10 on h1 test -e second
kill -INT "$pid"
ends_with 130
expect_equal 'none not_started not_started' "$(jq -r '.hosts[].failure' "$out" | xargs)"
expect_equal 130 "$(jq .exit_code "$out")"

# All at work, on a host, here and on the way to one.
for signal in INT TERM; do
  began=$SECONDS
  begin command --connect_timeout 60 --runs_on "h1,local,${DTOOL_LAB_DEAD:-h2}" --command 'echo begun; sleep 3081'
  eventually 10 grep -q '^h1: begun' "$out"
  eventually 10 grep -q '^local: begun' "$out"
  if [[ $signal == INT ]]; then
    kill -INT "$pid"
    eventually 10 grep -q 'Ctrl-C again' "$err"
    kill -0 "$pid" || fail 'it did not wait'
  fi
  kill -$signal "$pid"
  ends_with 130
  ((SECONDS - began < 30)) || fail "leaving took $((SECONDS - began)) s"
  expect_error 'left on interrupt'
  # What ran here is dtool's own child.
  eventually 5 bash -c '! pgrep -fP 1 "sleep 308[1]"'
done

# A run that was not started says so, and its document too.
if [[ -n ${DTOOL_LAB_DEAD:-} ]]; then
  begin run --json --connect_timeout 60 --runs_on "h1,$DTOOL_LAB_DEAD" --no_sync --code_path '~' -- sleep 3082
  eventually 10 on h1 bash -c 'ls .dtool/runs/sleep_*'
  kill -INT "$pid"
  eventually 10 grep -q 'Ctrl-C again' "$err"
  kill -INT "$pid"
  ends_with 130
  expect_error '^nothing was started$'
  expect_equal 130 "$(jq .exit_code "$out")"
  expect_exit 0 "$DTOOL" list
  expect_error '^no run is recorded'

  # Nor was a set-up script, on a host that was ready for it.
  echo 'sleep 3083' >slow.sh
  begin config --connect_timeout 60 --runs_on "h1,$DTOOL_LAB_DEAD" --config_script slow.sh
  eventually 10 on h1 bash -c 'ls .dtool/runs/config_*'
  kill -INT "$pid"
  eventually 10 grep -q 'Ctrl-C again' "$err"
  kill -INT "$pid"
  ends_with 130
  expect_error '^  h1: interrupted before its script was started$'
  expect_no_error 'started on'
  expect_exit 0 "$DTOOL" list
  expect_error '^no run is recorded'
fi

# Waiting for a key to be shown is no work that could be lost.
if [[ -n ${DTOOL_LAB_DEAD:-} ]]; then
  begin trust --connect_timeout 60 --runs_on "$DTOOL_LAB_DEAD"
  sleep 0.5
  kill -INT "$pid"
  ends_with 130
fi

# Sending stops at the first one, however much is left to send.
mkdir large
head -c 30000000 /dev/urandom >large/data
cd large
fault slow h1 rate 4mbit
began=$SECONDS
begin run --runs_on 'h[1-2]' -- true
sleep 4
kill -INT "$pid"
ends_with 130
((SECONDS - began < 30)) || fail "stopping took $((SECONDS - began)) s"
expect_error 'nothing was started'
fault mend h1
