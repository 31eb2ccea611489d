#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Whenever a launcher is killed while mpirun starts, and however soon kill follows, nothing is left and nothing comes to be
# afterwards: neither ranks nor an orted that was on its way to its host.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program mpirun
lab 3
let_h1_reach_the_others
on h1 mkdir -p /root/here
on h2 mkdir -p /root/here
on h3 mkdir -p /root/here
echo 'rounds in which something had been started:' >"$work/started"
pauses=(0.30 0.40 0.50 0.55 0.60 0.65 0.70 0.80 0.95)
has_enough() { (($(wc -l <"$work/started") > 2)); }
# Later and later, where two have not begun by then.
for ((i = 0; i < 30; i++)); do
  ((i < ${#pauses[@]})) || ! has_enough || break
  pause=${pauses[i]:-$((i - ${#pauses[@]} + 1)).2}
  dtool run --launcher mpi --runs_on h1,h2,h3 --no_sync -- bash -c 'setsid --fork sleep 1000; sleep 1000' >"$out" 2>&1 </dev/null &
  launcher=$!
  sleep "$pause"
  kill -KILL "$launcher" 2>/dev/null || true
  wait "$launcher" 2>/dev/null || true
  file=$(find "$HOME/.dtool/killfiles" -name '*.killfile' 2>/dev/null || true)
  [[ -n $file ]] || continue # it had come no further than checking the hosts
  run_id=$(basename "$file" .killfile)
  expect_exit 0 dtool kill "$run_id" --yes --delete --grace 1
  expect_no_process_with "$run_id"
  sleep 1.5 # what was on its way would have arrived
  expect_no_process_with "$run_id"
  echo "$pause" >>"$work/started"
done
has_enough || fail 'nothing was ever started'
