#!/usr/bin/env bash
# A process of a run that forks, leaves its session and ends all the time, so that no two looks see the same one, is ended by `dtool kill`; one
# that is too quick for it is not said to have ended.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_file /usr/bin/python3
lab 1
cat >hop.py <<'END'
import os, sys, time
while True:
    if os.fork():
        os._exit(0)
    os.setsid()
    time.sleep(float(sys.argv[1]))
END
tag=417203$$
hoppers() { pgrep -f "hop.py [0-9.]+ $tag" || true; }
hops() { [[ -n $(hoppers) && $(hoppers) != "$first" ]]; }
at_end 'for i in {1..2000}; do pkill -KILL -f "hop.py [0-9.]+ $tag" || break; done'

start() {
  expect_exit 0 dtool run --json --runs_on h1 -- bash -c "/usr/bin/python3 hop.py $1 $tag & exec sleep 0.5"
  run_id=$(json 'd["run_id"]')
  eventually 20 test -n "$(hoppers)"
  first=$(hoppers)
  eventually 20 hops
  eventually 20 ended
}
ended() { ! dtool status "$run_id" 2>/dev/null | grep -q 'running on'; }

for try in 1 2 3; do
  start 0.02
  expect_exit 0 dtool kill --yes --grace 0.5 "$run_id"
  expect_error 'none is left$'
  expect_equal '' "$(hoppers)"
done
start 0.0005
run dtool kill --yes --grace 0.5 "$run_id"
if [[ -n $(hoppers; sleep 0.3; hoppers) ]]; then
  expect_no_error 'none is left'
  expect_error 'processes? (is|are) still there'
fi
