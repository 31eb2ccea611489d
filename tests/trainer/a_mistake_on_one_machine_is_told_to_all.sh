#!/bin/bash
# One machine lacks the data, has a mistake in its experiment, or machine 0 lacks the checkpoint: both machines stop, exit
# with 2, and say the same.
. "$(dirname "$0")/harness.sh"
images() { printf '\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x02'; head -c 8 /dev/zero; }
labels() { printf '\0\0\x08\x01\0\0\0\x02\0\0'; }
mkdir data
for part in train t10k; do
  images > data/$part-images-idx3-ubyte
  labels > data/$part-labels-idx1-ubyte
done
printf '%s\n' 'workload = "classifier"' 'data.source = "mnist"' 'data.download = false' > e.toml

# run FOLDER0 FOLDER1 FLAG...: two machines, each with its data folder; their exit codes in ${codes[@]}.
run() {
  local listener machine folders=("$1" "$2")
  shift 2
  listener=127.0.0.1:$(free_port)
  for machine in 0 1; do
    DTOOL_MNIST_DIR=${folders[machine]} "$trainer" "${experiments[machine]}" --machine_id $machine --distributed_nodes 2 \
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

# both_say PATTERN: it is the last line of both logs, word for word.
both_say() {
  [ "${codes[*]}" = '2 2' ] || fail "exit codes ${codes[*]}"
  tail -n 1 machine0.log | grep -q "^dtool-trainer: $1" || fail "machine 0 does not say: $1"
  [ "$(tail -n 1 machine0.log)" = "$(tail -n 1 machine1.log)" ] || fail "the machines do not agree: $1"
}

experiments=(e.toml e.toml)
run data nowhere
both_say "rank 1 on machine 1 (.*) failed with exit code 2: no train-images-idx3-ubyte.gz in 'nowhere' (hint: put "
run data data --checkpoint nowhere.pt
both_say 'rank 0 on machine 0 (.*) failed with exit code 2: no checkpoint at nowhere.pt'

{ cat e.toml; echo train.epoch = 3; } > wrong.toml
for mistaken in 0 1; do
  experiments=(e.toml e.toml)
  experiments[mistaken]=wrong.toml
  run data data
  both_say "machine $mistaken (.*): wrong.toml:4: unknown key train.epoch (hint: did you mean train.epochs?)"
done
