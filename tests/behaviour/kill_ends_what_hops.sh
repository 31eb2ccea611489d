#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A process of a run that forks, leaves its session and ends all the time is ended by `dtool kill` where it bears the run's id. Where it
# bears no sign of the run it is named, and nobody says that none is left.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_file /usr/bin/python3
lab 1
cat >hop.py <<'END'
import os, time
while True:
    if os.fork():
        os._exit(0)
    os.setsid()
    os.utime("/root/beat")
    if os.path.exists("/root/enough"):
        break
    time.sleep(0.02)
END
root=$DTOOL_LAB_FOLDER/host1/root
on 1 touch /root/beat
at_end 'touch "$root/enough"; sleep 0.3'
beats() { [[ $(stat -c %y "$root/beat") != "$(sleep 0.3; stat -c %y "$root/beat")" ]]; }
start() { # $1: before the program
  expect_exit 0 dtool run --json --runs_on h1 -- bash -c "$1 /usr/bin/python3 hop.py & sleep 1"
  run_id=$(json 'd["run_id"]')
  eventually 20 beats
}

start ''
expect_exit 0 dtool kill --yes --delete --grace 0.5 "$run_id"
expect_error 'none is left$'
! beats || fail 'it goes on'

start 'setsid env -i'
eventually 20 eval 'dtool status "$run_id" | grep -q "ended"'
run dtool kill --yes --delete --grace 0.5 "$run_id"
if beats; then
  # Which of the two sees one in its short life is a matter of luck.
  expect_error "(begin and end all the time, each the child of one that is gone \([0-9]+ |without the run's id in the run's folder.* hop).*whether the run had them started"
  expect_error "no process is left that is known to be the run's"
fi
