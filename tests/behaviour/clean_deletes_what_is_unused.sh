#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool clean` shows what dtool keeps on hosts and here, with sizes and who uses it, and deletes after a yes what nothing has used for
# an hour, or for the days that were named; what a run uses stays, and so does what its processes wrote.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 2
echo word >file
hash() { printf "$1%.0s" {1..64}; }
# shellcheck disable=SC2016
expect_exit 0 dtool run --follow --runs_on h1,h2 -- bash -c 'echo kept >written'
ended=$(dtool list --json 2>/dev/null | grep -o 'bash_[0-9]*-[0-9]*-[0-9a-f]*' | head -n 1)
on h1 bash -c "for each in $(hash 1) $(hash 2) $(hash 3) $(hash 7); do mkdir -p .dtool/environments/\$each/venv; head -c 3000000 /dev/zero | tr '\\0' x >.dtool/environments/\$each/venv/data; done
  mkdir -p .dtool/trainers/$(hash 4) .dtool/host/$(hash 5) .dtool/environments/mine
  touch -d '3 hours ago' .dtool/environments/mine .dtool/environments/$(hash 1) .dtool/trainers/$(hash 4)
  touch -d '9 days ago' .dtool/environments/$(hash 2) .dtool/environments/$(hash 7) .dtool/host/$(hash 5)"
expect_exit 0 dtool run --runs_on h1 -- bash -c "sleep 697082 $(hash 2)"
on h1 touch -d '9 days ago' ".dtool/environments/$(hash 2)"

# Nothing is deleted without being asked for.
expect_exit 0 dtool clean --runs_on h1,h2
expect_output "^h1  *environment  *3\.0 MB  *3h 0.m  *~/.*$(hash 1)"
expect_output "^h1  *environment  *3\.0 MB  *9d .*used by bash_.*$(hash 2)"
expect_output "^h1  *dtool_host .*used by a process"
# On a host that shares the home folder, a run that goes on may have it.
expect_output "^h1  *dtool_host .*used by bash_.*$(hash 5)"
expect_output "^h2  *run_tree .*$ended/tree"
expect_error 'dtool clean --delete deletes what is unused'
expect_exit 2 dtool clean --runs_on h1 --delete
expect_error '3 things with .* would be deleted'
expect_exit 2 dtool clean --older_than 3
expect_error 'go with --delete'
on h1 test -e ".dtool/environments/$(hash 1)"

# A limit in gigabytes takes the longest unused, and no more than it must; the settings may have it.
expect_exit 0 dtool clean --runs_on h1 --delete --max_gb 1
expect_error 'no host keeps more than 1 GB of what can be deleted'
on h1 bash -c "mkdir -p .dtool/environments/$(hash 6); cp .dtool/environments/$(hash 1)/venv/data .dtool/environments/$(hash 6); touch -d '10 days ago' .dtool/environments/$(hash 6)"
kept=$(dtool clean --runs_on h1 --json 2>/dev/null | jq '[.things[].bytes] | add')
cp "$HOME/.dtool/config.toml" config.toml 2>/dev/null || true
printf '[clean]\nmax_gb = %s\n' "$(jq -n "($kept - 1000000) / 1e9")" >>"$HOME/.dtool/config.toml"
expect_exit 0 dtool clean --runs_on h1 --delete --yes --json
expect_equal "$(hash 6)" "$(json '" ".join(t["path"].split("/")[-1] for t in d["things"] if t["deleted"])')"
if [[ -e config.toml ]]; then mv config.toml "$HOME/.dtool/config.toml"; else rm "$HOME/.dtool/config.toml"; fi

# What was used lately stays, and what is in use.
expect_exit 0 dtool clean --runs_on h1 --delete --older_than 5 --yes --json
expect_equal "$(hash 7)" "$(json '" ".join(t["path"].split("/")[-1] for t in d["things"] if t["deleted"])')"
expect_exit 0 dtool clean --runs_on h1,h2 --delete --yes
expect_error 'deleted 2 things'
for each in 2 3; do on h1 test -e ".dtool/environments/$(hash $each)"; done
on h1 test -e .dtool/environments/mine
on h1 bash -c "! test -e .dtool/environments/$(hash 1) && ! test -e .dtool/trainers/$(hash 4)"

# The tree of a run that ended two hours ago goes; what was written in it is kept.
on h1 bash -c "touch -d '2 hours ago' .dtool/runs/$ended/machine*/exit_code"
# But not while somebody visits it.
"$DTOOL" exec "$ended" -m h1 -- 'touch begun; sleep 697083' &
visit=$!
eventually 10 on h1 test -e ".dtool/runs/$ended/tree/begun"
expect_exit 0 dtool clean --runs_on h1 --delete --yes
expect_output "^h1  *run_tree .*used by $ended .*$ended/tree"
on h1 test -e ".dtool/runs/$ended/tree/begun"
kill -TERM $visit
wait $visit || true
eventually 10 expect_no_process_with "$ended"
expect_exit 0 dtool clean --runs_on h1 --delete --yes
on h1 bash -c "! test -e .dtool/runs/$ended/tree"
expect_exit 0 dtool fetch "$ended" fetched --machine 0
expect_equal kept "$(cat fetched/machine0/written_in_tree/written 2>/dev/null || find fetched -name written -exec cat {} +)"
expect_exit 0 dtool clean
expect_exit 0 dtool kill --all --yes --delete
