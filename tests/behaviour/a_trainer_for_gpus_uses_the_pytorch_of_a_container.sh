#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# With `--container` a trainer that is built for GPUs uses LibTorch and CUDA of the PyTorch in the image, whatever the host has.
# shellcheck disable=SC2088  # it is for the hosts to expand
source "$(dirname "$0")/harness.sh"
source "$here/container_image.sh"
source "$here/pytorch_stand_in.sh"
needs_isolation
needs_program ch-run
needs_program busybox
make_pytorch
copy_pytorch "$work/other" 1.13.1
as_root
lab 2
both=h1,h2

# The image has the PyTorch; Python and what LibTorch wants besides are this machine's own /usr.
for host in 1 2; do
  root=$DTOOL_LAB_FOLDER/host$host/root
  make_image "$root/image"
  rmdir "$root/image"/lib "$root/image"/lib64
  ln -s usr/lib usr/lib64 "$root/image"
  copy_pytorch "$work/fitting$host" 1.13.1+cu117
  make_environment "$root/image/opt/fitting" /opt/fitting "$work/fitting$host"
  make_environment "$root/image/opt/other" /opt/other "$work/other"
  make_environment "$root/venv" /root/venv "$work/other"
done
train() {
  expect_exit "$1" timeout 100 "$DTOOL" run digits --runs_on "$both" --follow \
    --container '~/image' --bind /usr --bind /etc/alternatives --env_activate_path "$2" --config_kwargs '{"data":{"train_samples":1200,"test_samples":200},"train":{"epochs":1}}'
}

# It is the image's PyTorch that has to be the right one, not the host's.
wanted="none can be sent: this machine's trainer is built for GPUs and uses the LibTorch of PyTorch 1\.13\.1\+cu117, and"
train 2 /opt/other
expect_error "$wanted the one there is 1\.13\.1 \(/opt/other/lib/.*/torch\)"
expect_error '^nothing was started'
train 2 '~/venv'
expect_error "$wanted the one there is 1\.13\.1 \(/root/venv/lib/.*/torch\)"
train 0 /opt/fitting
expect_output '2 ranks on 2 machines'
expect_output 'test accuracy 0\.'
! compgen -G "$DTOOL_LAB_FOLDER/host1/root/.dtool/trainers/*/lib/libtorch*" || fail 'LibTorch came along'

# It is the image's own library that is used.
rm "$work/fitting2/torch/lib/libtorch_cuda.so"
train 2 /opt/fitting
expect_error '^  h2: .*/\.dtool/trainers/.*/dtool-trainer lacks libtorch_cuda\.so'
