#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool kill` ends what a run leaves behind to live on: daemons, processes that ignore TERM and HUP, that cleared or
# overwrote their environment, that are stopped, or that answer TERM with a child; and counts zombies as ended.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_file /usr/bin/python3
lab 2

# Each of these is told from all other processes by its argument.
tag=918273$$
cat >hide.sh <<'END'
tag=$1
(setsid bash -c "sleep $tag.1 &")                                     # a daemon: double fork, a session of its own
(trap '' TERM HUP INT; sleep $tag.2) &                                # deaf
(trap '' TERM HUP INT; setsid bash -c "sleep $tag.3 &")               # a deaf daemon
env -i sleep $tag.4 &                                                 # without environment, a child
env -i bash -c "sleep $tag.5 &"                                       # without environment, an orphan
setsid env -i sleep $tag.6 &                                          # without environment, in a session of its own
(setsid bash -c "trap 'setsid sleep $tag.7 &' TERM; while :; do sleep 0.1; done" &) # answers TERM with a child
(cp "$(command -v sleep)" "$DTOOL_OUTPUT_DIR/a
) R 1"; setsid "$DTOOL_OUTPUT_DIR/a
) R 1" $tag.11 &)                                                     # a name that /proc/PID/stat does not quote
(setsid bash -c "kill -STOP \$\$; exec sleep $tag.8" &)               # stopped
/usr/bin/python3 retitle.py $tag.9 &                                  # its environment is overwritten, its parent gone
/usr/bin/python3 zombie.py $tag.10 &                                  # its child is a zombie
setsid /usr/bin/python3 headless.py $tag.12 &                         # its main thread has ended, and another goes on
(setsid bash -c "/usr/bin/python3 headless.py $tag.13 &" &)           # the same as a daemon
wait
END
# What setproctitle does: the title runs over into the environment.
cat >retitle.py <<'END'
import ctypes, os, sys, time
if os.fork():
    os._exit(0)
fields = open('/proc/self/stat').read().rsplit(')', 1)[1].split()
begin, end = int(fields[47]), int(fields[48])
ctypes.memset(begin, ord('x'), end - begin)
open(os.environ['DTOOL_OUTPUT_DIR'] + '/retitled', 'w')
while True:
    time.sleep(1)
END
cat >zombie.py <<'END'
import os, time
if os.fork() == 0:
    os._exit(0)
while True:
    time.sleep(1)
END
cat >headless.py <<'END'
import ctypes, os, threading, time
def go_on():
    while True:
        open(os.environ['DTOOL_OUTPUT_DIR'] + '/headless', 'w').write(str(os.getpid()))
        time.sleep(0.1)
threading.Thread(target=go_on).start()
ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[os.uname().machine], 0)
END

expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" -- bash hide.sh "$tag"
run_id=$(json 'd["run_id"]')
all_are_there() {
  local host kind
  for host in 1 2; do
    on "$host" test -e "/root/here/experiment_output/$run_id/retitled" || return 1
    for kind in 1 2 3 4 5 6 9 10 11; do on "$host" pgrep -f " $tag\.$kind\$" || return 1; done
  done
}
eventually 20 all_are_there
retitled=$(pgrep -f "retitle.py $tag.9" | head -n 1)
[[ -z $(tr -d x <"/proc/$retitled/environ") ]] || fail 'the test does not test: the environment is still there'

# It has no command line any more, and its environment only in its other thread.
headless() {
  local pid
  for pid in $(ps -eo pid=,stat=,nlwp= | awk '$2 ~ /^Z/ && $3 > 1 { print $1 }'); do
    ! grep -qszx "DTOOL_RUN_ID=$run_id" "/proc/$pid"/task/*/environ || echo "$pid"
  done
}
has_all() { (($(headless | wc -l) >= 4)); }
eventually 20 has_all
before=$(headless)
expect_exit 0 dtool kill --json --grace 1 --yes --delete "$run_id"
for pid in $before; do [[ ! -e /proc/$pid ]] || fail "what has no main thread any more is left: $pid"; done
expect_equal True "$(json 'd["runs"][0]["none_left"]')"
((0 < $(json 'd["runs"][0]["forced"]'))) || fail 'what ignored TERM was not counted as forced'
((30 < $(json 'd["runs"][0]["ended"]'))) || fail 'too few processes were counted'
expect_no_process_with "$run_id"
expect_equal '' "$(pgrep -af "$tag" || true)"
expect_equal '' "$(on 1 screen -ls | grep Detached || true)"
for host in 1 2; do expect_equal '' "$(on "$host" ls .dtool/runs)"; done
expect_equal '' "$(ls "$HOME/.dtool/killfiles")"
