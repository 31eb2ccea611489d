#!/bin/bash
# SPDX-License-Identifier: MIT
# Every mistake in the flags of dtool-trainer comm: exit code 2 and one message that names it, before anything starts.
. "$(dirname "$0")/harness.sh"

# refused PATTERN HINT ARGUMENT...: HINT may be empty.
refused() {
  local pattern=$1 hint=$2 code=0
  shift 2
  "$trainer" comm "$@" > out.log 2> err.log || code=$?
  [ $code = 2 ] || fail "$*: exit code $code"
  [ "$(grep -c '^dtool-trainer: ' err.log)" = 1 ] || fail "$*: not one message"
  grep -q "^dtool-trainer: .*$pattern" err.log || fail "$*: the message lacks '$pattern'"
  if [ -n "$hint" ]; then grep -q "^hint: .*$hint" err.log || fail "$*: the hint lacks '$hint'"; fi
  [ ! -s out.log ] || fail "$*: it measured"
}
refused 'at least 2 ranks' 'nproc_per_node 2'
refused "'1x' is not a size" '1k-16M' --sizes 1x
refused "'2k-1k' begins above its end" '' --sizes 2k-1k
refused "no 'allreduce'" 'all_reduce, gather' --operations allreduce
refused "no 'rings'" 'library, links, ring' --algorithms rings
refused "'both' is neither" '' --messages both
refused "no 'mpi'" 'auto, gloo, nccl' --backend mpi
refused '--repeats must be' '' --repeats 0
refused 'unknown flag --seed' 'comm --help' --seed 3
refused "flags only, not 'more'" '' more
refused 'needs --distributed_ip_and_port' '29500' --distributed_nodes 2

code=0
"$trainer" e.toml --sizes 1k > out.log 2> err.log || code=$?
[ $code = 2 ] && grep -q 'unknown flag --sizes' err.log || fail "a flag of comm is taken for training"
"$trainer" comm --help > help.log || fail "comm --help: exit code $?"
for flag in sizes operations algorithms messages repeats iterations output_dir json machine_id rendezvous_timeout; do
  grep -q -- "--$flag" help.log || fail "comm --help lacks --$flag"
done
! grep -q -- '--checkpoint' help.log || fail "comm --help has flags of training"
