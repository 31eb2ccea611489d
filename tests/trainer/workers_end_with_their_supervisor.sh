#!/bin/bash
# SPDX-License-Identifier: MIT
# TERM and INT to the machine's process end its workers, and so does its own violent end.
. "$(dirname "$0")/harness.sh"
endless_experiment e.toml
for signal in TERM INT KILL; do
  # In a shell without job control, background jobs ignore INT unless told otherwise.
  env --default-signal=INT "$trainer" e.toml --nproc_per_node 2 --output_dir $signal > $signal.log 2>&1 &
  supervisor=$!
  started+=("$supervisor")
  await 60 "training before $signal" is_training $signal.log
  workers=$(children "$supervisor")
  [ "$(wc -w <<< "$workers")" = 2 ] || fail "there are not two workers"
  kill -$signal "$supervisor"
  await_exit "$supervisor" 2> /dev/null
  case $signal in TERM) expected=143 ;; INT) expected=130 ;; KILL) expected=137 ;; esac
  [ "$code" = "$expected" ] || fail "after $signal the exit code is $code"
  for pid in $workers; do await 20 "the end of worker $pid after $signal" is_gone "$pid"; done
done
