#!/usr/bin/env bash
# The check before a run leaves a process on the first host that holds the port for the other machines' reports. It ends when the session
# listens there, and when the launch fails, is interrupted or is killed, with its connection; `dtool check` leaves none.
source "$(dirname "$0")/harness.sh"
needs_isolation
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
  [[ $signal != INT ]] || { sleep 0.3; kill -INT "$launcher"; }
  wait "$launcher" || true
  # A kept connection outlives the launcher, for five minutes if nothing uses it.
  [[ $case != kept* ]] || expect_exit 0 dtool disconnect --runs_on h1
  eventually 3 is_free
  fault thaw h2
done

# It is there until the session has the port.
expect_exit 0 dtool run --json --runs_on h1,h2 -- sleep 1000
run_id=$(json 'd["run_id"]')
eventually 2 is_free
is_supervised() { [[ $(on 1 cat ".dtool/runs/$run_id/machine0/supervision") == ok && $(on 2 cat ".dtool/runs/$run_id/machine1/supervision") == ok ]]; }
eventually 20 is_supervised
expect_exit 0 dtool kill --yes "$run_id"
expect_exit 0 dtool run --on_failure leave --json --runs_on h1,h2 -- sleep 1000
is_free || fail 'a port is held for a run without supervision'
expect_exit 0 dtool kill --yes --all
