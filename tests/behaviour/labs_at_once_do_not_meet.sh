#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Labs that are started at the same time have networks of their own, and the end of one leaves the other alone.
source "$(dirname "$0")/harness.sh"
lab 2

first=$DTOOL_LAB_HOSTS
for other in a b c; do
  "$here/../lab" up 2 --name "$other-$$" --owner $$ >"$work/$other.log" 2>&1 &
done
wait
for other in a b c; do
  cat "$work/$other.log"
  hosts=$("$here/../lab" env --name "$other-$$" | sed -n 's/^export DTOOL_LAB_HOSTS=//p')
  expect_no_file "$work/seen $hosts"
  touch "$work/seen $hosts"
  [[ $hosts != "$first" ]] || fail "$hosts twice"
done
for other in a b c; do
  expect_exit 0 "$here/../lab" down --name "$other-$$"
done
expect_exit 0 ssh h2 true
