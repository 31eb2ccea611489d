#!/bin/bash
# One machine lacks the data, or machine 0 the checkpoint: it exits with 2, the other stops and says why.
. "$(dirname "$0")/harness.sh"
images() { printf '\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x02'; head -c 8 /dev/zero; }
labels() { printf '\0\0\x08\x01\0\0\0\x02\0\0'; }
mkdir data
for part in train t10k; do
  images > data/$part-images-idx3-ubyte
  labels > data/$part-labels-idx1-ubyte
done
printf '%s\n' 'workload = "classifier"' 'data.source = "mnist"' > e.toml

# run FOLDER0 FOLDER1 FLAG...: two machines, each with its data folder; their exit codes in ${codes[@]}.
run() {
  local listener machine folders=("$1" "$2")
  shift 2
  listener=127.0.0.1:$(free_port)
  for machine in 0 1; do
    DTOOL_MNIST_DIR=${folders[machine]} "$trainer" e.toml --machine_id $machine --distributed_nodes 2 \
      --distributed_ip_and_port "$listener" "$@" > machine$machine.log 2>&1 &
    pids[machine]=$!
    started+=($!)
  done
  for machine in 0 1; do
    await 60 "the end of machine $machine" is_gone "${pids[machine]}"
    await_exit "${pids[machine]}"
    codes[machine]=$code
  done
}

run data nowhere
[ "${codes[*]}" = '1 2' ] || fail "exit codes ${codes[*]}"
grep -q "^dtool-trainer: no train-images-idx3-ubyte in 'nowhere'" machine1.log || fail "machine 1 does not say it"
grep -q "machine 0: rank 0 stopped: rank 1 on machine 1 (.*) failed: no train-images-idx3-ubyte in 'nowhere'" \
  machine0.log || fail "machine 0 was not told"

run data data --checkpoint nowhere.pt
[ "${codes[*]}" = '2 1' ] || fail "exit codes ${codes[*]}"
grep -q "machine 1: rank 1 stopped: rank 0 on machine 0 (.*) failed: no checkpoint at nowhere.pt" machine1.log ||
  fail "machine 1 was not told"
