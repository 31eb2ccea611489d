#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Modules, an environment, a container and torchrun are the same whoever starts the processes: dtool, mpirun, Slurm or Grid Engine.
# shellcheck disable=SC2088  # it is for the hosts to expand
source "$(dirname "$0")/harness.sh"
source "$here/container_image.sh"
needs_isolation
for program in ch-run busybox mpirun srun munged sge_qmaster; do needs_program "$program"; done
needs_file /usr/share/modules/init/bash
lab 3 --slurm --gridengine --login --shared_home
let_h1_reach_the_others
home=$DTOOL_LAB_FOLDER/host1/root
make_image "$home/image"
mkdir -p "$home/modules" "$home/venv/bin"
printf '#%%Module\nsetenv BLAS_VERSION 2.0\n' >"$home/modules/blas"
# What the log-in exports is there for the processes. A function and a line end are not in the way.
printf '%s\n' 'tell_f() { echo "f"; }' 'export -f tell_f' $'export LINES_OF=$\'a\\nb\'' 'export MODULEPATH=$HOME/modules' >"$home/.bashrc"
echo 'export ACTIVATED_WITH=$BLAS_VERSION' >"$home/venv/bin/activate"
cat >tell.sh <<'S'
echo "$(cat /etc/whose 2> /dev/null || echo the host): rank $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE, blas $BLAS_VERSION $ACTIVATED_WITH, run $DTOOL_RUN_ID"
S
# Stands for torchrun, whose words alone matter here.
cat >"$home/venv/bin/torchrun" <<'S'
#!/bin/sh
echo "torchrun $*"
S
chmod +x "$home/venv/bin/torchrun"
# Wherever it goes and whatever it leaves behind, the run's own folder, code and words are used.
echo 'PATH=$HOME/venv/bin:$PATH; cd /; exec >/dev/null; program=(false) code=/ rank=7; export port=80; trap "" TERM' >>"$home/venv/bin/activate"

places() {
  case $1 in
    gridengine) echo --runs_on h1 --nodes 2 --ntasks_per_node 2 --parallel_environment two ;;
    slurm) echo --runs_on h1 --nodes 2 --ntasks_per_node 2 ;;
    *) echo --runs_on h2,h3 --nproc_per_node 2 ;;
  esac
}
for launcher in ssh mpi slurm gridengine; do
  read -ra where < <(places "$launcher")
  start=(timeout 100 "$DTOOL" run --follow --launcher "$launcher" "${where[@]}")
  expect_exit 0 "${start[@]}" --modules blas --env_activate_path '~/venv' -- bash tell.sh
  for rank in 0 1 2 3; do expect_output "the host: rank $rank of 4, $((rank % 2)) of 2, blas 2.0 2.0, run bash_"; done
  expect_exit 0 "${start[@]}" --modules blas --container '~/image' -- sh tell.sh
  for rank in 0 1 2 3; do expect_output "the image: rank $rank of 4, $((rank % 2)) of 2, blas 2.0 , run sh_"; done
  expect_exit 0 "${start[@]}" --env_activate_path '~/venv' --torchrun -- train.py
  expect_equal 2 "$(grep -c 'torchrun --nnodes 2' "$out")"
  for node in 0 1; do
    expect_output "^machine$node: torchrun --nnodes 2 --node_rank $node --nproc_per_node 2 --rdzv_backend static --rdzv_endpoint 198[.0-9]*:[0-9]+ --max_restarts 0 train.py$"
  done
  # A machine's number is no rank's.
  expect_exit 2 dtool logs --rank 1
  expect_error '^dtool: train_.* has no rank 1$'
  expect_error 'torchrun starts them$'
  expect_exit 2 "${start[@]}" --container '~/no_image' -- true
  expect_error 'there is no image /root/no_image$'
  expect_exit 2 "${start[@]}" --modules nothing -- true
  expect_error 'module load nothing failed'
done
