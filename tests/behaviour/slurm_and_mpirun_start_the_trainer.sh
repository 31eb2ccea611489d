#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A real srun, sbatch and mpirun start dtool-trainer's ranks on three hosts, which train as those that dtool started; and
# where a rank is killed, the others say that it closed its connection, and nothing stays.
source "$(dirname "$0")/harness.sh"
needs_isolation
[[ -x ${DTOOL_TRAINER:-} ]] || skip 'needs dtool-trainer, which was not built'
for program in srun munged mpirun; do command -v $program >/dev/null || skip "needs $program"; done
lab 3 --slurm
cat >e.toml <<'END'
workload = "classifier"
data.source = "digits"
data.train_samples = 1200
data.test_samples = 200
train.epochs = 1
END
sed 's/epochs = 1/epochs = 1000000/' e.toml >endless.toml
echo 'checkpoint.every_epochs = 0' >>endless.toml
losses() { grep -o '^epoch.* loss [0-9.]*' "$1" | grep -o '[0-9.]*$'; }
expect_exit 0 timeout 100 "$DTOOL_TRAINER" e.toml --nproc_per_node 3 --output_dir own
losses "$out" >own.losses
[[ -s own.losses ]] || fail 'no losses'

# trained: the run whose output is in $out had three ranks on three machines, and our own losses.
trained() {
  expect_output ': 3 ranks on 3 machines'
  expect_equal 1 "$(grep -c '^test accuracy' "$1")"
  expect_equal "$(<own.losses)" "$(losses "$1")"
}

mpi() {
  timeout 100 mpirun --allow-run-as-root --host h1,h2,h3 --mca oob_tcp_if_include "${hosts_network}" --mca btl self,tcp -np 3 \
    -x MASTER_ADDR="$(head -n 1 "$DTOOL_LAB_FOLDER/hosts")" -x MASTER_PORT=29511 "$@"
}
hosts_network=$(head -n 1 "$DTOOL_LAB_FOLDER/hosts")/22

expect_exit 0 timeout 100 srun -N 3 -n 3 "$DTOOL_TRAINER" e.toml --output_dir srun
trained "$out"
expect_exit 0 mpi "$DTOOL_TRAINER" e.toml --output_dir "$PWD/mpirun"
trained "$out"
printf '%s\n' '#!/bin/bash' '#SBATCH -N 3 -n 3' "#SBATCH -o $PWD/sbatch.log" "srun $DTOOL_TRAINER e.toml --output_dir sbatch" >job.sh
expect_exit 0 timeout 100 sbatch --wait job.sh
cp sbatch.log "$out"
trained sbatch.log

# Two machines' processes, one a node, each with two workers of its own: the flags go before Slurm's variables.
# shellcheck disable=SC2016
expect_exit 0 timeout 100 srun -N 2 -n 2 bash -c 'exec "$0" e.toml --machine_id "$SLURM_NODEID" --distributed_nodes 2 --nproc_per_node 2 \
  --distributed_ip_and_port "$(grep -m 1 " h1 " /etc/hosts | cut -d" " -f1):29522" --output_dir flags' "$DTOOL_TRAINER"
expect_output ': 4 ranks on 2 machines'

# names_the_dead LAUNCHER...: rank 1 of an endless run is killed.
names_the_dead() {
  local waiting
  : >"$out" # what the last command said is no sign of this one
  "$@" "$DTOOL_TRAINER" endless.toml --output_dir "$PWD/endless" >"$out" 2>&1 </dev/null &
  waiting=$!
  eventually 60 grep -q samples/s "$out"
  signal_rank KILL 1 h2
  last_code=0 last_command="$1, with rank 1 killed"
  wait "$waiting" || last_code=$?
  [[ $last_code != 0 ]] || fail 'all went well, it says'
}
names_the_dead timeout 100 srun -N 3 -n 3 --kill-on-bad-exit=0
expect_output "^dtool-trainer: rank 0 on machine 0 .*: rank 1 on machine 1 \($(fault exec h2 hostname)\) closed its connection"
names_the_dead mpi
# mpirun tells of the process whose end it has heard of first: of that one, or of rank 0, which names it.
expect_output 'exited on signal 9|rank 1 on machine 1 .* closed its connection'
is_idle() { [[ -z $(pgrep -f "^$DTOOL_TRAINER endless.toml") ]]; }
eventually 30 is_idle
