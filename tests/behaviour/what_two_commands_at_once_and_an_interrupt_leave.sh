#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Two commands at the same time, an interrupt before the start, a killfile that cannot be deleted and a name that is a part of another one
# lose nothing, leave nothing, and end nothing else.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 2
mkdir code && cd code

# One of two set-up scripts starts on a host.
echo 'sleep 100' >../slow.sh
for each in 1 2; do "$DTOOL" config --runs_on h1 --config_script ../slow.sh >"$work/config$each" 2>&1 & pids[each]=$!; done
codes=
for each in 1 2; do code=0; wait "${pids[each]}" || code=$?; codes+="$code "; done
[[ $codes == '0 1 ' || $codes == '1 0 ' ]] || fail "the two ended with $codes"
grep -q 'a set-up script is still running there' "$work"/config[12] || fail 'none says why'
expect_exit 0 dtool kill --all --yes --delete

# A run that is called as set-up scripts are is none of them.
printf '#!/bin/sh\nsleep 1000\n' >config && chmod +x config
cp config _config.py
expect_exit 0 dtool run --runs_on h1 -- ./_config.py
expect_exit 0 dtool run --runs_on h1 -- ./config
expect_exit 0 dtool config --runs_on h1 --config_script ../slow.sh --force
expect_exit 0 dtool status run_config --json
expect_equal running "$(json 'd["machines"][0]["state"]')"
expect_equal 2 "$(find "$HOME/.dtool/killfiles" -name 'run_*config*' | wc -l)"
expect_exit 0 dtool kill --all --yes --delete

# A part of an id is no name for kill.
for tag in lr1 lr10; do expect_exit 0 dtool run --runs_on h1 --extra_tag $tag -- sleep 1000; done
expect_exit 0 dtool kill lr1 --yes --delete
for name in lr1 sleep_lr1; do
  expect_exit 2 dtool kill $name --yes
  expect_error 'sleep_lr1_.* was ended, and its killfile was deleted'
done
expect_exit 2 dtool kill leep_lr10 --yes
expect_error '^hint: did you mean sleep_lr10_'
expect_exit 0 dtool status lr10 --json
expect_equal running "$(json 'd["machines"][0]["state"]')"

# A killfile that cannot be deleted keeps no other run from its end, and its own run can be ended again.
expect_exit 0 dtool run --runs_on h2 -- sleep 1000
mount --bind "$HOME/.dtool/killfiles" "$HOME/.dtool/killfiles"
mount -o remount,bind,ro "$HOME/.dtool/killfiles"
at_end 'umount "$HOME/.dtool/killfiles" 2>/dev/null'
expect_exit 1 dtool kill --all --yes --delete
expect_error 'cannot be deleted: Read-only file system'
expect_equal 2 "$(grep -c 'none is left' "$err")"
umount "$HOME/.dtool/killfiles"
expect_exit 0 dtool kill --all --yes --delete

# An interrupt while the code is sent leaves nothing on the hosts.
head -c 40000000 /dev/urandom >data
fault slow h2 rate 20mbit
env --default-signal=INT "$DTOOL" run --runs_on h1,h2 -- sleep 1000 >"$work/run" 2>&1 </dev/null &
pid=$!
has_begun() { compgen -G "$DTOOL_LAB_FOLDER/host1/root/.dtool/runs/sleep_*" >/dev/null; }
eventually 20 has_begun
sleep 1
kill -INT "$pid"
expect_ended 130 "$pid" 'the interrupted run' "$work/run"
expect_equal '' "$(find "$DTOOL_LAB_FOLDER"/host[12]/root/.dtool/runs -mindepth 1)"
rm data

# Two fetches into one folder: one has it.
fault slow h2 rate 1gbit
expect_exit 0 dtool run --runs_on h2 --follow -- sh -c 'head -c 30000000 /dev/urandom >"$DTOOL_OUTPUT_DIR/big"'
fault slow h2 rate 40mbit
"$DTOOL" fetch last "$work/got" >"$work/fetch1" 2>&1 & one=$!
has_folder() { [[ -d $(echo "$work"/got/*/.dtool-partial) || -d $work/got/.dtool-partial ]]; }
eventually 10 has_folder
expect_exit 2 dtool fetch last "$work/got"
expect_error 'another dtool is fetching into '
expect_ended 0 "$one" 'the first fetch' "$work/fetch1"
expect_equal '' "$(find "$work/got" -name '.dtool-partial')"
expect_exit 0 dtool kill --all --yes --delete
