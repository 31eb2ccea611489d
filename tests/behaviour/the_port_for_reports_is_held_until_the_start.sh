#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The check before a run leaves a process on the first host that holds the port for the other machines' reports. It ends when the session
# listens there, and when the launch fails, is interrupted or is killed, also where the
# connection was a kept one; `dtool check` leaves none. Where another user has all ports, nothing is started.
source "$(dirname "$0")/harness.sh"
needs_isolation
as_root
lab 2
connects_anew
touch code
is_held() { on 1 pgrep -f 'dtool-host hold /root/'; }
is_held_here() { pgrep -f "dtool-host hold $HOME/"; }
is_free() { ! is_held && ! is_held_here; }

expect_exit 0 dtool check --no_trainer --runs_on h1,h2
is_free || fail 'dtool check holds a port'

on h2 sh -c 'mv ~/.dtool ~/kept && touch ~/.dtool'
expect_exit 2 dtool run --runs_on h1,h2 -- true
eventually 2 is_free
on h2 sh -c 'rm ~/.dtool && mv ~/kept ~/.dtool'

# The second host keeps the launcher waiting.
for case in 'h1 KILL' 'h1 TERM' 'h1 INT' 'local KILL' 'kept INT' 'kept KILL'; do
  first=${case% *} signal=${case#* }
  if [[ $first == kept ]]; then
    first=h1
    keeps_connections
    expect_exit 0 dtool command --runs_on h1 --command true
  fi
  fault freeze h2
  env --default-signal=INT "$DTOOL" run --connect_timeout 60 --runs_on "$first,h2" -- sleep 1000 >"$out" 2>"$err" </dev/null &
  launcher=$!
  case $first in
    h1)
      eventually 20 is_held
      expect_process_with "$(on 1 ls -t .dtool/runs | head -n 1)"
      ;;
    local) eventually 20 is_held_here ;;
  esac
  kill "-$signal" "$launcher"
  # While there is code to send, the first one is enough.
  [[ $signal != INT ]] || { sleep 0.3; kill -INT "$launcher" 2>/dev/null || true; }
  wait "$launcher" || true
  eventually 3 is_free
  fault thaw h2
done

# It is there until the session has the port.
expect_exit 0 dtool run --json --runs_on h1,h2 -- sleep 1000
run_id=$(json 'd["run_id"]')
eventually 2 is_free
is_supervised() { [[ $(on 1 cat ".dtool/runs/$run_id/machine0/supervision") == ok && $(on 2 cat ".dtool/runs/$run_id/machine1/supervision") == ok ]]; }
eventually 20 is_supervised
expect_exit 0 dtool kill --yes --delete "$run_id"
expect_exit 0 dtool run --on_failure leave --json --runs_on h1,h2 -- sleep 1000
is_free || fail 'a port is held for a run without supervision'
expect_exit 0 dtool kill --yes --delete --all

# Another user has every port, without listening there, on IPv6 alone: nothing shows it but the attempt.
cat >"$work/take_all.py" <<'END'
import os, resource, socket, time
resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
os.setgid(65534)
os.setuid(65534)
taken = []
for port in range(20000, 32000):
    s = socket.socket(socket.AF_INET6)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        s.bind(("::", port))
    except OSError:
        continue
    taken.append(s)
print("taken", flush=True)
time.sleep(600)
END
on 1 /usr/bin/python3 -c "$(cat "$work/take_all.py")" >"$work/said" &
at_end "kill $! 2>/dev/null"
has_taken_all() { grep -q taken "$work/said"; }
eventually 20 has_taken_all
before=$(on 1 ls .dtool/runs | wc -l)
for hosts in h1 h1,h2; do
  expect_exit 2 dtool run --runs_on "$hosts" -- touch started
  expect_error "h1: no port from 20000 to 31999 is free: programs there have them all"
  expect_error 'hint: end those programs, or name another host first'
  expect_error 'nothing was started'
done
expect_equal "$before" "$(on 1 ls .dtool/runs | wc -l)"
expect_exit 1 dtool check --no_trainer --runs_on h1,h2
expect_output 'no port from 20000 to 31999 is free'
