#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# With --stdin all hosts get standard input as it comes, whole, in bounded memory: the slowest one holds the others back, one
# that ends or reads no more does not. A pipe without an end is left with Ctrl-C, and whoever writes into it is told.
source "$(dirname "$0")/harness.sh"
lab 3

# Of any kind, from anywhere, over each kind of connection; also nothing, and a file.
printf 'one\0\377\ntwo' >bytes
wanted=$(sha256sum <bytes | cut -c 1-64)
for flags in '' '--ssh_program ssh'; do
  # shellcheck disable=SC2086
  "$DTOOL" command $flags --stdin --fold --runs_on 'h[1-3],local' --command sha256sum <bytes >"$out" 2>"$err"
  expect_output '^h\[1-3\],local \(4\)$'
  expect_output "^$wanted  -$"
done
expect_exit 0 dtool command --stdin --runs_on h1,local --command 'cat; echo end'
expect_equal 2 "$(wc -l <"$out")"
# More hosts than are served at once.
(cat bytes; sleep 0.3; cat bytes) | "$DTOOL" command --stdin --fold --width 1 --runs_on 'h[1-3]' --command sha256sum >"$out" 2>"$err"
expect_output "^$(cat bytes bytes | sha256sum | cut -c 1-64)  -$"

# 200 MB; h2 ends early and fails, here somebody closes it early and goes on, and nobody else is the worse for it.
much='seq -f "%015.0f" 13107200'
peak_of() {
  local size
  peak=0
  while size=$(awk '/VmHWM/ { print $2 }' "/proc/$1/status" 2>/dev/null) && [[ -n $size ]]; do
    peak=$size
    sleep 0.05
  done
}
mkfifo fifo
bash -c "$much" >fifo &
# shellcheck disable=SC2016
"$DTOOL" command --stdin --runs_on 'h[1-3],local' --command \
  'case $(hostname) in lab-*-2) head -c 1 >/dev/null; exit 5 ;; lab-*) sha256sum ;; *) head -c 1 >/dev/null; exec <&-; sleep 3; echo went on ;; esac' \
  <fifo >"$out" 2>"$err" &
pid=$!
peak_of $pid
expect_ended 1 $pid 'dtool command --stdin'
wanted=$(bash -c "$much" | sha256sum)
for host in h1 h3; do expect_output "^$host: $wanted"; done
expect_output '^local: went on$'
expect_error '^  h2: exit code 5$'
expect_error '^dtool: 1 of 4 hosts failed'
((peak > 0 && peak < 60000)) || fail "dtool took $peak kB of memory"

# A host that does not read holds back who writes; once it has ended, the rest goes to the others.
written() { awk '/^wchar/ { print $2 }' "/proc/$writer/io"; }
exec 3< <(exec yes)
writer=$!
"$DTOOL" command --stdin --runs_on h1,h2 --command 'case $(hostname) in lab-*-1) until [ -e go ]; do sleep 0.1; done ;; *) head -c 300000000 | wc -c ;; esac' <&3 >"$out" 2>"$err" &
pid=$!
held_back() { local before; before=$(written); ((before > 1000000)) || return 1; sleep 1; [[ $(written) == "$before" ]]; }
eventually 30 held_back
(($(written) < 100000000)) || fail "$(written) bytes were taken, though h1 reads none"
on h1 touch go
expect_ended 0 $pid 'dtool command --stdin'
expect_output '^h2: 300000000$'
exec 3<&-
eventually 5 bash -c "! kill -0 $writer"

# Ctrl-C, TERM and --timeout while more may come, and while a host does not read.
for ending in INT TERM timeout; do
  for line in cat 'sleep 3051'; do
    exec 3< <(exec yes)
    writer=$!
    timeout=()
    [[ $ending != timeout ]] || timeout=(--timeout 2)
    env --default-signal=INT "$DTOOL" command "${timeout[@]}" --stdin --outdir left --runs_on h1,local --command "echo begun >&2; $line" <&3 >"$out" 2>"$err" &
    pid=$!
    for host in h1 local; do eventually 20 grep -q begun left/$host.err; done
    [[ $ending == timeout ]] || kill -$ending $pid
    case $ending in timeout) wanted=1 ;; *) wanted=130 ;; esac
    expect_ended $wanted $pid "dtool command --stdin, $ending, $line"
    exec 3<&-
    eventually 5 bash -c "! kill -0 $writer"
    rm -r left
  done
done

# What cannot be read.
code=0
"$DTOOL" command --stdin --runs_on h1 --command cat <. >"$out" 2>"$err" || code=$?
expect_equal 1 $code
expect_error '^  h1: standard input cannot be read: Is a directory$'
expect_exit 2 dtool command --stdin --hostfile - --command cat
expect_error '^dtool: --stdin and --hostfile - both read standard input$'
