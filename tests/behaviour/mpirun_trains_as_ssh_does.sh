#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The bundled trainer under mpirun has the losses that it has over SSH for the same seed and number of ranks, on machines with as
# many processes each, and, with both, where they have not.
source "$(dirname "$0")/harness.sh"
needs_isolation
[[ -x ${DTOOL_TRAINER:-} ]] || skip 'needs dtool-trainer, which was not built'
needs_program mpirun
lab 3
let_h1_reach_the_others
cat >e.toml <<'END'
workload = "classifier"
data.source = "digits"
data.train_samples = 1200
data.test_samples = 200
train.epochs = 2
END
trained() { # options of dtool run
  expect_exit 0 timeout 100 "$DTOOL" run e.toml --seed 5 --follow "$@"
  expect_output "3 ranks"
  grep -o 'epoch.* loss [0-9.]*' "$out" | grep -o '[0-9.]*$'
}
trained --runs_on h1,h2,h3 >ssh.losses
[[ $(wc -l <ssh.losses) -ge 2 ]] || fail 'no losses'
trained --launcher mpi --runs_on h1,h2,h3 >mpi.losses
expect_equal "$(<ssh.losses)" "$(<mpi.losses)"
printf '%s\n' 'h2 slots=1' 'h1 slots=2' >"$work/hosts"
cp "$HOME/.ssh/id_ed25519" "$HOME/.ssh/known_hosts" "$DTOOL_LAB_FOLDER/host2/root/.ssh/"
theirs 2 .ssh
trained --launcher mpi --hostfile "$work/hosts" >uneven.losses
expect_equal "$(<ssh.losses)" "$(<uneven.losses)"
trained --hostfile "$work/hosts" >uneven_ssh.losses
expect_equal "$(<ssh.losses)" "$(<uneven_ssh.losses)"
