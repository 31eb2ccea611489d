#!/bin/bash
# SPDX-License-Identifier: MIT
# Four ranks of one machine share one data set in memory; a table of numbers takes no more memory while it is read; nothing is
# left when all are killed at once; and ranks that cannot share it have the same numbers, and say so once.
. "$(dirname "$0")/harness.sh"
ranks=4

# training NAME SAMPLES [TOML line]...: an endless training of four ranks, with its processes' ids in $pids, when each has
# been through its data.
training() {
  printf '%s\n' 'workload = "regression"' 'data.source = "random"' 'data.features = 50' "data.train_samples = $2" \
    'train.batch_size = 4096' 'train.epochs = 1000000' 'checkpoint.every_epochs = 0' "${@:3}" > "$1.toml"
  "$trainer" "$1.toml" --nproc_per_node $ranks --output_dir "$1" > "$1.log" 2>&1 &
  supervisor=$!
  started+=("$supervisor")
  await 120 "two epochs of $1" grep -qs '"event": "epoch".*"epoch": 2,' "$1/metrics.jsonl"
  read -ra pids <<< "$(children $supervisor)"
  [ ${#pids[@]} = $ranks ] || fail "$1 has ${#pids[@]} ranks"
}
# What the ranks take of the memory, in MB; what they share is counted once.
memory() { local pid; for pid in "${pids[@]}"; do cat "/proc/$pid/smaps_rollup"; done | awk '/^Pss:/ { sum += $2 } END { print int(sum / 1000) }'; }
finish() {
  kill -KILL "$supervisor" "${pids[@]}"
  local pid
  for pid in "${pids[@]}"; do await 20 "the end of rank $pid" has_ended "$pid"; done
}

find /dev/shm -mindepth 1 | sort > before.txt
training small 20000
small=$(memory)
finish
training large 600000  # 120 MB more, of inputs and targets
large=$(memory)
finish
find /dev/shm -mindepth 1 | sort | comm -13 before.txt - > new.txt
! grep -i dtool new.txt || fail "something is left in /dev/shm"
echo "$ranks ranks: $small MB with a small set, $large MB with one that is 118 MB larger"
[ $((large - small)) -gt 100 ] || fail "the larger set does not show: the memory is not measured"
[ $((large - small)) -lt 180 ] || fail "the ranks do not share their data: $small MB and $large MB"

# Where a file must not be that large, there is no memory to be shared.
losses() { metric "$1" epoch loss | head -n 2; }
ulimit -S -f 65536
training own 600000
finish
ulimit -S -f "$(ulimit -H -f)"
[ "$(grep -c '^note: each rank on machine 0 (.*) has its own copy of the data: cannot make shared memory: File too large' own.log)" = 1 ] ||
  fail "the copies are not told once"
! grep -q '^note: ' large.log || fail "a note though the data is shared"
[ "$(losses own)" = "$(losses large)" ] || fail "shared data gives other losses"

# Where there is too little memory for one copy, there is none for four: nothing is loaded, and the mistake is told once.
code=0
env LD_PRELOAD="$(dirname "$trainer")/libslow_disk.so" SHARED_MEMORY_BYTES=100000000 \
  "$trainer" large.toml --nproc_per_node $ranks --output_dir short > short.log 2>&1 || code=$?
[ $code = 2 ] || fail "too little memory gives exit code $code"
grep -q 'machine 0 (.*) has too little memory for the data, which its ranks share: cannot make shared memory: No space left' short.log ||
  fail "the shortage is not told"
grep -q '^hint: train on fewer samples' short.log || fail "no hint"

# A table: 3 million numbers, 12 MB as floats, 24 MB as doubles.
table() { awk -v rows="$1" 'BEGIN { srand(1); for (i = 0; i < rows; i++) { for (j = 0; j < 9; j++) printf "%.3f,", rand(); printf "%.3f\n", rand() } }' > "$1.csv"; }
peak() {
  table "$1"
  printf '%s\n' 'workload = "regression"' 'data.source = "csv"' "data.train_file = \"$1.csv\"" 'data.header = false' 'data.test_share = 0.5' \
    'data.standardise = true' 'train.epochs = 1' 'checkpoint.every_epochs = 0' "train.batch_size = $(($1 / 20))" 'train.evaluate_every = 0' > "$1.toml"
  python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[2:], check=True, stdout=open(sys.argv[1], "w"), stderr=subprocess.STDOUT)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1000)' "$1.log" "$trainer" "$1.toml" --output_dir "t$1" || fail "$1"
}
few=$(peak 100)
many=$(peak 300000)
echo "a table of 100 rows takes $few MB, one of 300000 rows $many MB"
[ $((many - few)) -lt 24 ] || fail "a table of 12 MB as floats takes $((many - few)) MB"
