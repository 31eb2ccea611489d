#!/bin/bash
# Machines that were given different numbers of workers, or the same number twice, stop at once, with 2, and say so.
. "$(dirname "$0")/harness.sh"
digits_experiment e.toml

# refused PATTERN FLAGS...: as many sides as there are FLAGS; all stop soon and end with the same line.
refused() {
  local pattern=$1 listener side
  local -a pids=()
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
    [ $code = 2 ] || fail "$pattern: exit code $code"
    tail -n 1 "side$side.log" | grep -q "^dtool-trainer: $pattern .*(hint: every machine needs the same" ||
      fail "side $side does not say: $pattern"
  done
}

refused 'machine 1 (.*) counts 2 ranks, another machine 4' '--distributed_nodes 2 --machine_id 0 --nproc_per_node 2' \
  '--distributed_nodes 2 --machine_id 1'
refused 'two machines say that they are machine 1' '--distributed_nodes 3 --machine_id 0' \
  '--distributed_nodes 3 --machine_id 1' '--distributed_nodes 3 --machine_id 1'
