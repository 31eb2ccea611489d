#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool fetch` waits for no host that sends nothing, and takes no more from one than it was told to.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 2
mkdir code
cd code
touch file
expect_exit 0 dtool run --follow --json --runs_on h1,h2 -- bash -c 'head -c 30000000 /dev/urandom >"$DTOOL_OUTPUT_DIR/large"; echo >"$DTOOL_OUTPUT_DIR/small"'
id=$(json 'd["run_id"]')
cd ..

# h1 sends nothing: its rsync stands still, before and in the middle.
for words in 'sleep 300' "exec $(command -v rsync) \"\$@\" | { head -c 1000000; sleep 300; }"; do
  printf '#!/bin/bash\n%s\n' "$words" >"$DTOOL_LAB_FOLDER/host1/root/rsync"
  chmod 755 "$DTOOL_LAB_FOLDER/host1/root/rsync"
  echo 'PATH=/root:$PATH' >"$DTOOL_LAB_FOLDER/host1/root/.bashrc"
  rm -rf "$work/fetched"
  began=$SECONDS
  expect_exit 1 timeout 60 "$DTOOL" fetch --timeout 2 "$id" "$work/fetched"
  ((SECONDS - began < 25)) || fail "it took $((SECONDS - began)) s"
  expect_error '1 of 2 hosts failed: fetching'
  expect_error 'h1: nothing came from it for too long'
  expect_file "$work/fetched/machine1/large"
  expect_no_file "$work/fetched/machine0/large"
done
rm "$DTOOL_LAB_FOLDER/host1/root/.bashrc"

# A host that sends without an end, slowly enough to be met.
for i in {1..40}; do head -c 5000000 /dev/urandom >"$DTOOL_LAB_FOLDER/host2/root/code/experiment_output/$id/more$i"; done
fault slow h2 rate 40mbit
expect_exit 1 timeout 100 "$DTOOL" fetch --max_gb 0.035 "$id" "$work/limited"
expect_error 'h2: more came than is allowed'
expect_file "$work/limited/machine0/large"
(($(du -sb "$work/limited/machine1" | cut -f1) < 80000000)) || fail "too much came: $(du -sb "$work/limited/machine1")"
expect_exit 0 dtool fetch --max_gb 1 --machine 0 "$id" "$work/limited"

# A log that lies elsewhere comes after the outputs, and what they took counts for it.
mkdir "$DTOOL_LAB_FOLDER/host1/root/logs"
head -c 20000000 /dev/urandom >"$DTOOL_LAB_FOLDER/host1/root/logs/machine0.log"
sed -i '0,/^log = .*/s,,log = "~/logs/machine0.log",' "$HOME/.dtool/killfiles/$id.killfile"
expect_exit 1 dtool fetch --max_gb 0.04 --machine 0 "$id" "$work/with_log"
expect_error 'h1: more came than is allowed'
expect_exit 0 dtool fetch --max_gb 0.06 --machine 0 "$id" "$work/with_log"
expect_file "$work/with_log/machine0/machine0.log"
