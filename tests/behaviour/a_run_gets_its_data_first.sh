#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool run --data` copies a data set to all hosts before the start, sends nothing the second time, and starts nothing without it.
# shellcheck disable=SC2088,SC2016  # the hosts' tildes and variables
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3
root() { printf '%s' "$DTOOL_LAB_FOLDER/host$1/root"; }
mkdir "$work/set" code
echo one >"$work/set/one"
echo vocab >"$work/vocab"
cd code
echo true >train.sh

expect_exit 0 dtool run --follow --runs_on "$DTOOL_LAB_HOSTS" --data "$work/set:sets/mine" --data "$work/vocab:~/sets/vocab" -- \
  bash -c 'cat ~/sets/mine/one ~/sets/vocab | xargs'
for id in 0 1 2; do expect_output "^machine$id: one vocab$"; done
expect_error '  sent 1 of 1 files and folders'
expect_exit 0 dtool run --follow --runs_on "$DTOOL_LAB_HOSTS" --data "$work/set:sets/mine" -- true
expect_error '  all was there already$'
expect_exit 0 dtool kill --all --yes --delete

# A path from the current folder, and one that no shell has completed, mean the same later: also for a run that goes on from or repeats this one,
# when the files are gone from this machine.
mkdir -p ../relative "$HOME/of_home"
checkout=$PWD
relative=$(readlink -f ../relative)
echo relative >../relative/file
echo home >"$HOME/of_home/file"
expect_exit 0 dtool run --json --follow --runs_on "$DTOOL_LAB_HOSTS" --data ../relative:sets/relative --data='~/of_home:sets/home' -- \
  bash -c 'cat ~/sets/relative/file ~/sets/home/file | xargs'
id=$(json 'd["run_id"]')
mkdir "$work/elsewhere"
cd "$work/elsewhere"
expect_exit 0 dtool rerun "$id" --follow
expect_output '^machine2: relative home$'
expect_error 'all was there already$'
rm -r "$relative"
expect_exit 0 dtool rerun "$id" --follow
expect_output '^machine2: relative home$'
expect_error 'relative is gone here, and what the hosts have is used'
cd "$checkout"
expect_exit 0 dtool run --resume "$id" --follow
expect_output '^machine2: relative home$'
expect_exit 0 dtool kill --all --yes --delete

# A host that cannot run it: nothing is copied before that is known.
expect_exit 2 dtool run --runs_on "$DTOOL_LAB_HOSTS" --data "$work/set:early" --env_activate_path '~/nowhere/activate' -- true
expect_error 'there is no file .*/nowhere/activate'
for host in 1 2 3; do expect_no_file "$(root "$host")/early"; done

# A host that cannot take it: nothing starts.
on 2 mkdir -p /root/other/one
expect_exit 2 dtool run --runs_on "$DTOOL_LAB_HOSTS" --data "$work/set:other" -- touch '~/started'
expect_error '/root/other/one is a folder, and a file is to be copied there'
expect_error 'nothing was started'
expect_no_file "$(root 1)/other"
expect_exit 2 dtool run --runs_on "$DTOOL_LAB_HOSTS" --data "$work/missing" -- true
expect_error 'there is no .*/missing'
expect_exit 2 dtool run --runs_on "$DTOOL_LAB_HOSTS" --data "$work/vocab:sets" -- true
expect_error 'a file keeps its name'
expect_equal '' "$(find "$HOME/.dtool/killfiles" -name '*.killfile' 2>/dev/null)"
