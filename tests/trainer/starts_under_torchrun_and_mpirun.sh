#!/bin/bash
# SPDX-License-Identifier: MIT
# The real torchrun and the real mpirun start the ranks of a run, which trains as dtool-trainer's own workers do; and where a
# rank dies, the launcher ends with a failure, having shown a rank's line that names it.
. "$(dirname "$0")/harness.sh"
python=/usr/bin/python3
digits_experiment e.toml data.train_samples=1200 data.test_samples=200 train.epochs=1
# Ends by itself, should this test fail.
digits_experiment endless.toml data.train_samples=1200 data.test_samples=200 train.epochs=3000 checkpoint.every_epochs=0
"$trainer" e.toml --nproc_per_node 3 --output_dir own > own.log 2>&1 || fail "dtool-trainer itself: exit code $?"

# Debian's torchrun 1.13 fails on Python 3.11, whose flags no longer list their zero: only this one function is replaced.
torchrun() {
  timeout 100 "$python" -c '
import sys
import torch.distributed.elastic.multiprocessing.api as api
if api.Std.from_str("0") is None:
    api.Std.from_str = classmethod(lambda cls, text: cls(int(text)))
from torch.distributed.run import main
sys.argv[0] = "torchrun"
main()' --master_addr 127.0.0.1 --master_port "$(free_port)" --nproc_per_node 3 --no_python "$@"
}
openmpi() {
  timeout 100 mpirun --allow-run-as-root --oversubscribe --mca btl self,tcp -np 3 -x MASTER_ADDR=localhost -x MASTER_PORT="$(free_port)" "$@"
}

# trains LAUNCHER: three ranks, the same losses as our own, and one rank that talks.
trains() {
  "$1" "$trainer" e.toml --output_dir "$1" > "$1.log" 2>&1 || fail "$1: exit code $?"
  grep -q ': 3 ranks on 1 machine' "$1.log" || fail "$1: not three ranks"
  [ "$(grep -c '^test accuracy' "$1.log")" = 1 ] || fail "$1: not one accuracy"
  [ "$(metric "$1" epoch loss)" = "$(metric own epoch loss)" ] || fail "$1: other losses"
}

# Processes of this test, by pid.
processes_of_rank() {
  { grep -lzs "^PWD=$work\$" /proc/[0-9]*/environ | xargs -r grep -lzsx "RANK=$1" || true; } | cut -d/ -f3
}

# names_the_dead LAUNCHER: a rank of an endless run is killed.
names_the_dead() {
  local launched victim
  (exec > "$1.endless.log" 2>&1; "$1" "$trainer" endless.toml --output_dir "$1.endless") &
  launched=$!
  started+=("$launched")
  await 60 "training under $1" is_training "$1.endless.log"
  victim=$(processes_of_rank 1 | while read -r pid; do
    [ "$(cat "/proc/$pid/comm")" != dtool-trainer-w ] || echo "$pid"
  done)
  [ "$(wc -w <<< "$victim")" = 1 ] || fail "$1: no one worker of rank 1 but '$victim'"
  kill -KILL "$victim"
  await 60 "the end of $1" is_gone "$launched"
  await_exit "$launched"
  [ $code != 0 ] || fail "$1 says that all went well"
  await 10 "the end of what $1 started" eval '[ -z "$(processes_of_rank "[0-9]")" ]'
}

if "$python" -c 'import torch.distributed.run' 2> /dev/null; then
  trains torchrun
  names_the_dead torchrun
  ran=torchrun
fi
if command -v mpirun > /dev/null; then
  trains openmpi
  names_the_dead openmpi
  ran=${ran:-}mpirun
fi
if [ "${ran:-}" != torchrunmpirun ]; then
  echo "needs python3-torch and openmpi-bin" >&2
  [ -z "${CI:-}" ] || exit 1
  exit 77
fi
