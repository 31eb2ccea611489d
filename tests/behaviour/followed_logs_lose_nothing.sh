#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool logs -f` and `dtool run --follow` show every line once, whatever happens to connections (sshd's process killed, a cable cut)
# and to the log (renamed, truncated), and end as the run does; Ctrl-C ends the following alone.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3
touch code
followed=$work/followed
# shellcheck disable=SC2016
timeout 120 "$DTOOL" run --on_failure leave --follow --runs_on "$DTOOL_LAB_HOSTS" --extra_tag counts -- \
  bash -c 'for ((i = 0; i < 1500; i++)); do echo "line $i"; sleep 0.01; done; [ "$RANK" != 1 ] || exit 7' >"$followed" 2>"$followed.err" </dev/null &
running=$!
eventually 30 grep -q 'started on' "$followed.err"
: >"$out"
timeout 120 "$DTOOL" logs -f >"$out" 2>"$err" </dev/null &
waiting=$!
last_command='dtool logs -f' last_code=
has_lines() { [[ $(grep -c "^machine$1: " "$out") -gt $2 && $(grep -c "^machine$1: " "$followed") -gt $2 ]]; }
for id in 0 1 2; do eventually 30 has_lines $id 50; done
on h1 pkill -KILL -f 'dtool-host serve'  # what reads the log there
eventually 10 grep -q 'machine0: the answer ended early; trying again' "$err"
eventually 10 grep -q 'machine0: connected again' "$err"
fault cut h1
sudo_on h2 pkill -KILL -f 'sshd: (root|ann)@notty'
log=$(readlink "$DTOOL_LAB_FOLDER"/host3/root/.dtool/runs/*counts*/machine2/log)
on h3 mv "$log" "$log.1"
sudo_on h3 pkill -KILL -f 'sshd: (root|ann)@notty'
sleep 5
fault mend h1
expect_ended 1 "$waiting"
expect_each_line_once() {
  for id in 0 1 2; do expect_equal "$(seq -f 'line %g' 0 1499)" "$(sed -n "s/^machine$id: //p" "$out")"; done
}
expect_each_line_once
expect_lost_and_found() {
  expect_equal 1 "$(grep -c 'machine1: .*; trying again' "$err")"
  expect_error 'machine1: connected again'
  expect_error '1 of 3 hosts failed'
  expect_error 'exit code 7'
}
expect_lost_and_found
out=$followed err=$followed.err
expect_ended 1 "$running" 'dtool run --follow'
expect_each_line_once
expect_lost_and_found
out=$work/stdout err=$work/stderr

# Renamed and written anew; then cut short.
expect_exit 0 timeout 60 "$DTOOL" run --quiet --runs_on "$DTOOL_LAB_HOSTS" --extra_tag rotates -- bash -c 'echo one; until [ -e /root/end ]; do sleep 0.1; done; echo last'
programs() { on h3 pgrep -cx dtool-host; }
before=$(programs)
is_quiet() { [[ $(programs) -le $before ]]; }
: >"$out"
timeout 120 "$DTOOL" logs -f --machine 2 >"$out" 2>"$err" </dev/null &
waiting=$!
eventually 30 expect_output 'machine2: one'
log=$(readlink "$DTOOL_LAB_FOLDER"/host3/root/.dtool/runs/*rotates*/machine2/log)
# shellcheck disable=SC2016
on h3 bash -c 'mv "$1" "$1.1"; echo two >"$1"' bash "$log"
eventually 30 expect_output 'machine2: two'
expect_error 'machine2: the log was rotated'
on h3 bash -c ': >"$1"' bash "$log"
eventually 30 expect_error 'machine2: the log was truncated'
# shellcheck disable=SC2016
on h3 bash -c 'echo three >>"$1"' bash "$log"
eventually 30 expect_output 'machine2: three'
pkill -INT -P "$waiting"
expect_ended 130 "$waiting"
expect_error 'interrupted: the run goes on by itself'

# With a pattern and without the lines that were there, a lost connection brings none of them.
eventually 30 is_quiet
: >"$out"
timeout 120 "$DTOOL" logs -f --machine 2 --tail 0 --grep 'three|four' >"$out" 2>"$err" </dev/null &
waiting=$!
is_read() { [[ $(programs) -gt $before ]]; }
eventually 30 is_read
sleep 1
sudo_on h3 pkill -KILL -f 'sshd: (root|ann)@notty'
eventually 30 expect_error 'machine2: connected again'
# shellcheck disable=SC2016
on h3 bash -c 'echo four >>"$1"' bash "$log"
eventually 30 expect_output .
pkill -INT -P "$waiting"
expect_ended 130 "$waiting"
expect_equal 'machine2: four' "$(cat "$out")"
for host in 1 2 3; do on $host touch /root/end; done
expect_exit 0 timeout 60 "$DTOOL" logs -f --fold --machine 0 --machine 1
expect_equal "$(printf 'machine[0-1]: %s\n' one last)" "$(cat "$out")"
expect_exit 0 dtool kill --all --yes --delete
