#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A command leaves its connections to the next one, whatever that does; nobody waits for what keeps them, and it ends in time.
source "$(dirname "$0")/harness.sh"
needs_program jq
lab 3
keeps_connections
hosts='h[1-3]'

# Neither a substitution nor a pipe waits for the keeper, which has nothing of the command's.
expect_equal 3 "$(DTOOL_RUN_ID=some-run dtool command --runs_on "$hosts" --command hostname | sort -u | wc -l)"
expect_equal 3 "$(find "$HOME/.dtool/connections" -name '*.0' | wc -l)"
expect_equal 3 "$(logins)"
keeper=$(keepers)
expect_equal 1 "$(wc -w <<<"$keeper")"
expect_equal "$keeper" "$(ps -o sid= -p "$keeper" | xargs)"
expect_equal '/' "$(readlink "/proc/$keeper/cwd")"
# The memory of the environment that it was started with holds a long title's end at most.
expect_equal '' "$(tr '\0' '\n' <"/proc/$keeper/environ" | grep '=' || true)"
expect_equal '/dev/null /dev/null /dev/null' "$(readlink "/proc/$keeper/fd/"{0,1,2} | xargs)"
# Its sockets, the event loop's own, and the folder of the sockets.
expect_equal "$HOME/.dtool/connections" "$(readlink "/proc/$keeper/fd/"* | grep -Ev '^(socket:|pipe:|anon_inode:|/dev/null)')"
expect_equal '700 600' "$(stat -c %a "$HOME/.dtool/connections" "$HOME/.dtool/connections/"*.0 | sort -ru | xargs)"

# Output on both streams, exit codes, signals, input of 3 MB, 200 MB of output, a time-out: as over a new connection.
expect_exit 1 dtool command --json --runs_on "$hosts" --command 'echo out; echo err >&2; case $(hostname) in *-2) exit 7 ;; *-3) kill -KILL $$ ;; esac'
expect_equal '0 7 137' "$(jq '.hosts[].exit_code' "$out" | xargs)"
expect_equal 'out out out err err err' "$(jq -r '.hosts[].stdout, .hosts[].stderr' "$out" | sort -r | xargs)"
expect_equal 200000000 "$(dtool command --json --runs_on h1 --command 'head -c 200000000 /dev/zero | tr "\0" x' | wc -c | awk '{ print $1 - $1 % 1000000 }')"
mkdir tree
seq 400000 >tree/numbers
cd tree
expect_exit 0 dtool run --runs_on "$hosts" --code_path tree --follow -- bash -c 'sha256sum <numbers'
expect_equal 3 "$(grep -c "$(sha256sum <numbers)" "$out")"
expect_exit 0 dtool logs
expect_exit 0 dtool kill --all --yes --delete
expect_equal 3 "$(logins)"
expect_exit 1 dtool command --runs_on h1 --timeout 3 --command 'echo begun; sleep 4711'
expect_output '^h1: begun$'
expect_error 'did not end in time'
expect_exit 1 on 1 pgrep -fx 'sleep 4711'
# As without a keeper, a connection on which something went wrong is not used again.
expect_exit 0 dtool command --runs_on "$hosts" --command true
expect_equal 4 "$(logins)"

# The second Ctrl-C leaves the command; its connection goes with it, and so does its input and output there.
: >"$out"
"$DTOOL" command --runs_on h2 --command 'echo begun; while sleep 0.1; do echo on; done' >"$out" 2>"$err" &
pid=$!
eventually 10 grep -q begun "$out"
kill -INT "$pid"
eventually 10 grep -q interrupted "$err"
kill -INT "$pid"
expect_ended 130 "$pid"
eventually 10 expect_exit 1 on 2 pgrep -fx 'sleep 0.1'

# Ended by hand: those of some hosts, then all.
expect_exit 0 dtool command --runs_on "$hosts" --command true
expect_exit 0 dtool disconnect --json --runs_on h2
expect_equal 'h2 closed' "$(json '" ".join(c["host"] + " " + c["state"] for c in d["connections"])')"
expect_exit 0 dtool disconnect
expect_error '^closed 2 connections: h\[1,3\]$'
eventually 10 no_keeper_is_left
expect_equal lock "$(ls "$HOME/.dtool/connections")"
expect_exit 0 dtool disconnect
expect_error '^no connection is kept$'
expect_exit 0 dtool disconnect --runs_on 'h[1-2]'
expect_error '^no connection to h\[1-2\] is kept$'

# Ended by time; and 0 keeps none.
printf '[connections]\nkeep = 1\n' >"$HOME/.dtool/config.toml"
expect_exit 0 dtool command --runs_on "$hosts" --command true
eventually 20 no_keeper_is_left
connects_anew
before=$(logins)
for _ in 1 2; do expect_exit 0 dtool command --runs_on "$hosts" --command true; done
expect_equal $((before + 6)) "$(logins)"
expect_equal '' "$(keepers)"
