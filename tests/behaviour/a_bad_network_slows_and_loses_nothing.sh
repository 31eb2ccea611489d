#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Over a link that loses one of ten packets and takes 200 ms for a round trip, `run`, `logs -f`, `status`, `fetch` and `kill` take longer and
# do all that they do elsewhere: no line and no byte is lost or comes twice. LOSS sets the percentage for each way, 5.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 2
echo code >code
fault slow h2 delay 100ms loss "${LOSS:-5}%"

# shellcheck disable=SC2016
timeout 150 "$DTOOL" run --follow --connect_timeout 60 --runs_on "$DTOOL_LAB_HOSTS" -- bash -c '
  head -c 300000 /dev/urandom >"$DTOOL_OUTPUT_DIR/result"
  for ((i = 0; i < 2000; i++)); do echo "line $i of $RANK"; done
  until [ -e /root/end ]; do sleep 0.2; done' >"$work/run.out" 2>"$work/run.err" </dev/null &
running=$!
has_all() { [[ $(grep -c "^machine$1: line" "$2") == 2000 ]]; }
last_command='dtool run --follow' last_code='' out=$work/run.out err=$work/run.err
for id in 0 1; do eventually 120 has_all $id "$out"; done
out=$work/stdout err=$work/stderr
run_id=$(basename "$HOME"/.dtool/killfiles/*.killfile .killfile)

timeout 120 "$DTOOL" logs -f --connect_timeout 60 "$run_id" >"$work/logs.out" 2>"$work/logs.err" </dev/null &
following=$!
expect_exit 0 timeout 120 "$DTOOL" status --connect_timeout 60 "$run_id"
expect_output 'running on 2 of 2 machines'
expect_exit 0 timeout 120 "$DTOOL" fetch --connect_timeout 60 "$run_id" fetched
for host in 1 2; do
  expect_equal "$(on $host sha256sum "here/experiment_output/$run_id/result" | cut -d' ' -f1)" "$(sha256sum <"fetched/machine$((host - 1))/result" | cut -d' ' -f1)"
done
for id in 0 1; do eventually 120 has_all $id "$work/logs.out"; done
on h1 touch end
expect_exit 0 timeout 120 "$DTOOL" kill --connect_timeout 60 --yes --delete "$run_id"
expect_error 'none is left'
expect_no_process_with "$run_id"

# Each line once and in order (the killed shell may say that its sleep was terminated), and of the machine that was killed, that it was.
for waiting in "$running" "$following"; do
  expect_ended 1 "$waiting"
done
for each in run logs; do
  for id in 0 1; do expect_equal "$(seq -f "line %g of $id" 0 1999)" "$(sed -n "s/^machine$id: \(line .*\)/\1/p" "$work/$each.out")"; done
  grep -q ': it was killed$' "$work/$each.err" || fail "$each does not say that it was killed: $(cat "$work/$each.err")"
done
