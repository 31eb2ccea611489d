#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Slurm's nodes train with a trainer that is built for GPUs, which uses the PyTorch of an environment in their shared home, or of a
# container. The log-in host looks for that PyTorch where the nodes will; where it cannot look into the container it says so.
# shellcheck disable=SC2088  # it is for the hosts to expand
source "$(dirname "$0")/harness.sh"
source "$here/container_image.sh"
source "$here/pytorch_stand_in.sh"
needs_isolation
for program in ch-run busybox srun munged; do needs_program $program; done
make_pytorch
lab 3 --slurm --login --shared_home
home=$DTOOL_LAB_FOLDER/host1/root
make_environment "$home/venv" /root/venv "$pytorch"
make_image "$home/image"
rmdir "$home/image"/lib "$home/image"/lib64
ln -s usr/lib usr/lib64 "$home/image"
make_environment "$home/image/opt/venv" /opt/venv "$pytorch"
train() {
  expect_exit "$1" timeout 100 "$DTOOL" run digits --launcher slurm --runs_on h1 --nodes 2 \
    --follow --config_kwargs '{"data":{"train_samples":1200,"test_samples":200},"train":{"epochs":1}}' "${@:2}"
}
in_container=(--container '~/image' --bind /usr --bind /etc/alternatives --env_activate_path /opt/venv)
wanted="none can be sent: this machine's trainer is built for GPUs and uses the LibTorch of PyTorch 1\.13\.1\+cu117, and"

# The engine may be on the nodes only: then nobody can tell which PyTorch they will find.
fault hide h1 ch-run
train 2 "${in_container[@]}"
expect_error "$wanted this host cannot look into the container: ch-run is not there$"
expect_error 'hint: name a login host that can'
expect_error '^nothing was started'
fault unhide h1 ch-run
train 0 "${in_container[@]}"
expect_output '2 ranks on 2 machines'
bundle=$(ls "$home/.dtool/trainers")
train 0 --env_activate_path '~/venv'
expect_output '2 ranks on 2 machines'
expect_equal "$bundle" "$(ls "$home/.dtool/trainers")"
! compgen -G "$home/.dtool/trainers/$bundle/lib/libtorch*" || fail 'LibTorch came along'
