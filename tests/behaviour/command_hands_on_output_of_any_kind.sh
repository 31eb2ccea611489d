#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Output without an end of line, 100 MB of it, NUL bytes and bytes that are no UTF-8 arrive as they were, in bounded memory.
source "$(dirname "$0")/harness.sh"
needs_program jq
lab 2

said() { sed -n "s/^$1: //p" "$out"; }

# Standard error stays apart; a last line without its end is a line.
expect_exit 0 dtool command --runs_on h1 --command 'printf "one\ntwo"; printf "complaint" >&2'
expect_equal $'h1: one\nh1: two' "$(cat "$out")"
expect_equal 'h1: complaint' "$(cat "$err")"

# Any bytes; empty lines; a line of 300,000 characters.
all_bytes='printf "a\0b\377\376\n\n\r\033[0m\n"; head -c 300000 /dev/zero | tr "\0" x; echo'
expect_exit 0 dtool command --runs_on h1 --command "$all_bytes"
expect_equal "$(bash -c "$all_bytes" | sha256sum)" "$(said h1 | sha256sum)"
expect_exit 0 dtool command --fold --runs_on h1 --command "$all_bytes"
expect_equal "$(bash -c "$all_bytes" | sha256sum)" "$(tail -n +4 "$out" | sha256sum)"
expect_exit 0 dtool command --json --runs_on h1 --command "$all_bytes"
expect_equal 1 "$(jq -s length "$out")"
# Each byte that is no UTF-8 stands as one replacement character.
expect_equal "$(bash -c "$all_bytes" | wc -c)" "$(jq -r '.hosts[0].stdout | length' "$out")"

# 100 MB from each of two hosts at once.
much='seq -f "%015.0f" 6553600'
"$DTOOL" command --runs_on h1,h2 --command "$much" >"$out" 2>"$err" &
pid=$!
peak=0
while size=$(awk '/VmHWM/ { print $2 }' "/proc/$pid/status" 2>/dev/null) && [[ -n $size ]]; do
  peak=$size
  sleep 0.05
done
wait "$pid"
wanted=$(bash -c "$much" | sha256sum)
for host in h1 h2; do
  expect_equal "$wanted" "$(sed -n "s/^$host: //p" "$out" | sha256sum)"
done
((peak > 0 && peak < 50000)) || fail "dtool took $peak kB of memory"

# A host that never stops talking, and a reader that has heard enough.
expect_exit 1 dtool command --timeout 3 --runs_on h1,h2 --command 'case $(hostname) in *-1) sleep 2; yes ;; *) echo other ;; esac'
expect_output '^h1: y$'
expect_output '^h2: other$'
expect_error '^  h1: the command did not end in time'
for host in h1 local; do
  { code=0; timeout 60 "$DTOOL" command --runs_on $host --command yes 2>"$err" || code=$?; echo "$code" >"$work/code"; } | head -n 1 >"$out"
  expect_equal "$host: y" "$(cat "$out")"
  expect_equal 1 "$(cat "$work/code")"
  expect_equal '' "$(cat "$err")"
done

# Output that cannot be written is not a success.
code=0
"$DTOOL" command --runs_on h1,local --command 'echo hello; sleep 0.2; echo again' >/dev/full 2>"$err" || code=$?
expect_equal 1 "$code"
expect_error '^dtool: cannot write the output: No space left on device'
for closed in '>&-' '>&- 2>&-' '<&- >&-' '<&- >&- 2>&-'; do
  code=0
  eval '"$DTOOL" command --runs_on h1,h2,local --command "echo hello" 2>"$err" '"$closed" || code=$?
  expect_equal 1 "$code"
done
# Standard error is only about the work.
for lost in '2>&-' '2>/dev/full' '<&-'; do
  code=0
  eval '"$DTOOL" command --runs_on h1,none.invalid --command "echo hello" >"$out" '"$lost" || code=$?
  expect_equal 1 "$code"
  expect_output '^h1: hello$'
done
