#!/bin/bash
# Machines that were given different numbers of workers, or the same number twice, stop at once.
. "$(dirname "$0")/harness.sh"
digits_experiment e.toml

# refused PATTERN FLAGS_OF_FIRST FLAGS_OF_SECOND: both stop soon, with 1 or 2.
refused() {
  local pattern=$1 listener side
  listener=127.0.0.1:$(free_port)
  for side in 0 1; do
    shift
    # shellcheck disable=SC2086
    "$trainer" e.toml --distributed_nodes 2 --distributed_ip_and_port "$listener" $1 > side$side.log 2>&1 &
    pids[side]=$!
    started+=($!)
  done
  for side in 0 1; do
    await 60 "the end of side $side" is_gone "${pids[side]}"
    await_exit "${pids[side]}"
    [ $code = 1 ] || [ $code = 2 ] || fail "$pattern: exit code $code"
    grep -q "$pattern" side$side.log || fail "side $side does not say: $pattern"
  done
}

refused 'counts . ranks, another machine' '--machine_id 0 --nproc_per_node 2' '--machine_id 1'
