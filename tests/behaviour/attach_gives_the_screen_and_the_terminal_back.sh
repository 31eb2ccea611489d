#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool attach` shows a machine's live session in this terminal, in its size, on a host, through a jump host and here; Ctrl-a d
# leaves the run running; the terminal is as it was before, also after SIGTERM, a lost connection, a cut cable and the end of the run.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program tmux
lab 2 --behind  # machine 1 is reached through machine 0

mkdir code
cd code
cat >train.sh <<'END'
until [ -e ~/stop ]; do
  echo "size $(stty size </dev/tty), terminal $RANK"
  sleep 0.3
done
exit 3
END
expect_exit 0 dtool run --json --runs_on h1,h2 -- bash train.sh
id=$(json 'd["run_id"]')

# A terminal with a shell in it, which ends by itself should the test not come so far; a shell ignores TERM.
pane() { tmux -L "dtool-$$" -f /dev/null "$@"; }
# Sentences break at blanks there.
shows() { pane capture-pane -pJ >"$work/pane" && { grep -Eq -e "$1" "$work/pane" || tr -s '\n ' ' ' <"$work/pane" | grep -Eq -e "$1"; }; }
pane new-session -d -x 100 -y 30 'timeout --signal=KILL 170 bash --norc'
# $1: dtool attach's arguments. What the shell says afterwards begins with code=.
attaches() {
  pane send-keys -l "clear; stty -g >before; $DTOOL attach $1; echo code=\$?; stty -g >after"
  pane send-keys Enter
}
ends_with() {
  eventually 60 shows "^code=$1" || { pane capture-pane -p >&2; false; }
  eventually 10 test -s after
  expect_equal "$(cat before)" "$(cat after)"
  rm after
}

# Its size, a new one, and away from it. What the keys do is to be seen at the top, and a Ctrl-c alone interrupts nothing.
attaches "$id --machine 1"
eventually 30 shows 'size 30 100, terminal 1'
warns() { pane capture-pane -pJ | head -n 1 | grep -q 'Ctrl-c twice ends the run everywhere'; }
eventually 5 warns
pane send-keys C-c
eventually 5 warns
sleep 6  # as long as a second one counts as meant
eventually 20 eval '! warns'  # it has gone up with the lines of the program
pane send-keys C-c
eventually 5 warns
expect_process_with "$id"
pane resize-window -x 70 -y 20
eventually 30 shows 'size 20 70, terminal 1'
pane send-keys C-a d
ends_with 0
eventually 5 shows 'machine1 of .*: detached, it goes on'
expect_process_with "$id"

# SIGTERM, and a connection that is lost.
attaches "$id --machine 0"
eventually 30 shows 'size 20 70, terminal 0'
pkill -TERM -f "^$DTOOL attach $id"
ends_with 130
# A host that answers without end does not fill the memory.
program=$(on 1 sh -c 'echo ~/.dtool/host/*/dtool-host')
on 1 sh -c "mv $program $program.kept; printf '#!/bin/sh\necho dtool-host 1\nexec head -c 50000000 /dev/zero\n' >$program; chmod +x $program"
attaches "$id --machine 0"
ends_with 1
eventually 5 shows 'its answer has more than 1 MB'
on 1 sh -c "mv $program.kept $program"

attaches "$id --machine 0"
eventually 30 shows 'size 20 70, terminal 0'
fault cut h1
ends_with 1
eventually 5 shows 'dtool: failed: attaching to machine0'
eventually 5 shows "h1: the connection was lost"
fault mend h1
attaches "$id --machine 1"
eventually 30 shows 'size 20 70, terminal 1'
sudo_on 2 pkill -KILL -f '^sshd: (root|ann)@pts'
ends_with 1
eventually 5 shows 'dtool: failed: attaching to machine1'
expect_process_with "$id"

# Mistakes.
attaches "$id"
ends_with 2
eventually 5 shows 'hint: name one: --machine 0'
attaches "$id --machine 2"
ends_with 2
expect_exit 2 dtool attach "$id" --machine 0
expect_error 'dtool attach needs a terminal'
expect_error 'hint: dtool logs'

# The end of the run, seen from inside and from outside.
attaches "$id --machine 0"
eventually 30 shows 'size 20 70, terminal 0'
on 1 touch /root/stop
ends_with 0
eventually 5 shows 'has ended with exit code 3'
attaches "$id --machine 0"
ends_with 1
eventually 5 shows 'has ended with exit code 3'
eventually 5 shows 'hint: dtool logs'

# On this machine, without SSH.
expect_exit 0 dtool run --json --runs_on local -- bash train.sh
own=$(json 'd["run_id"]')
at_end 'dtool kill --yes --delete "$own" >/dev/null 2>&1'
attaches "$own"
eventually 30 shows 'size 20 70, terminal 0'
pane resize-window -x 90 -y 25
eventually 30 shows 'size 25 90, terminal 0'
pane send-keys C-c
pane send-keys C-a d
ends_with 0
eventually 5 shows 'machine0 of .*: detached, it goes on'
expect_process_with "$own"
attaches "$own"
eventually 30 shows 'size 25 90, terminal 0'
pkill -TERM -f "^$DTOOL attach $own"
ends_with 130
expect_process_with "$own"
# Two of them end it.
attaches "$own"
eventually 30 shows 'size 25 90, terminal 0'
pane send-keys C-c
pane send-keys C-c
ends_with 0
eventually 5 shows 'has ended with exit code 130'
expect_no_process_with "$own"
expect_exit 0 dtool kill --yes --delete "$own"
pane kill-server

expect_exit 0 dtool kill --yes --delete "$id"
