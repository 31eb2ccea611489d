#!/bin/bash
# SPDX-License-Identifier: MIT
# Machines that were given different numbers of workers, or the same number twice, stop at once and say so; the exit code of
# those that contradict others is 2.
. "$(dirname "$0")/harness.sh"
digits_experiment e.toml

# refused PATTERN FLAGS...: as many sides as there are FLAGS; all stop soon and end with the same line, one of them with 2.
refused() {
  local pattern=$1 listener side
  local -a pids=() codes=()
  listener=127.0.0.1:$(free_port)
  shift
  for side; do
    # shellcheck disable=SC2086
    "$trainer" e.toml --distributed_ip_and_port "$listener" $side > "side${#pids[@]}.log" 2>&1 &
    pids+=($!)
    started+=($!)
  done
  for side in "${!pids[@]}"; do
    await 60 "the end of side $side" is_gone "${pids[side]}"
    await_exit "${pids[side]}"
    codes+=("$code")
    grep -Eq "^dtool-trainer: .*$pattern" "side$side.log" || fail "side $side does not say: $pattern"
    [ $code = 1 ] || tail -n 1 "side$side.log" | grep -q "^hint: every machine needs the same" || fail "side $side: no hint"
  done
  [[ " ${codes[*]} " == *' 2 '* && ! " ${codes[*]} " =~ [03-9] ]] || fail "$pattern: exit codes ${codes[*]}"
}

refused 'machine [01] counts [24] ranks, another machine [42]' '--distributed_nodes 2 --machine_id 0 --nproc_per_node 2' \
  '--distributed_nodes 2 --machine_id 1'
refused 'two processes say that they are rank 1' '--distributed_nodes 3 --machine_id 0' \
  '--distributed_nodes 3 --machine_id 1' '--distributed_nodes 3 --machine_id 1'
