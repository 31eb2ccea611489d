#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A trainer that is built for GPUs is sent without LibTorch and CUDA: it uses those of the PyTorch in the host's environment, if that
# is the version that it was built with. Otherwise both versions are named, and nothing is sent.
source "$(dirname "$0")/harness.sh"
source "$here/pytorch_stand_in.sh"
needs_isolation
make_pytorch
as_root
lab 2
both=h1,h2

# The hosts have the same in environments of their own.
copy_pytorch "$work/host1" 1.13.1+cu117
copy_pytorch "$work/host2" 1.13.1
for host in 1 2; do
  make_environment "$DTOOL_LAB_FOLDER/host$host/root/venv" /root/venv "$work/host$host"
  make_environment "$DTOOL_LAB_FOLDER/host$host/root/empty" /root/empty
done
train() { expect_exit "$1" dtool run digits --runs_on "$both" --env_activate_path "/root/$2" --config_kwargs '{"train":{"epochs":1}}' --follow; }
bundles_on() { on "$1" find /root/.dtool/trainers -name '????????????????????????????????????????????????????????????????' 2>/dev/null || true; }

# A PyTorch of another version is named, and so is a Python without one; nothing is sent.
train 2 venv
wanted="none can be sent: this machine's trainer is built for GPUs and uses the LibTorch of PyTorch 1\.13\.1\+cu117, and"
expect_error "^  h2: .* $wanted the one there is 1\.13\.1 \(/root/venv/lib/.*/torch\)"
expect_error 'pip install torch==1\.13\.1'
expect_error '^nothing was started'
train 2 empty
expect_error "$wanted no Python there has a PyTorch"
expect_exit 1 dtool check --runs_on "$both" --env_activate_path /root/venv
expect_output "^trainer +none; dtool run sends it \([0-9] MB\), to use PyTorch 1\.13\.1\+cu117 there +h1\$"
expect_output "$wanted the one there is 1\.13\.1 "
for host in h1 h2; do expect_equal '' "$(bundles_on $host)"; done

# With the same version everywhere it trains there, and only the first run sends anything.
echo "__version__ = '1.13.1+cu117'" >"$work/host2/torch/version.py"
train 0 venv
expect_output '2 ranks on 2 machines'
bundle=$(bundles_on h1)
expect_equal "$bundle" "$(bundles_on h2)"
on h1 sh -c "! ls $bundle/lib | grep -E '^lib(torch|c10|openblas)'" || fail 'LibTorch came along'
train 0 venv
expect_no_error 'sending the trainer'
expect_exit 0 dtool install --runs_on "$both" --env_activate_path /root/venv
expect_output "^h\[1-2\]  there already: $bundle/dtool-trainer\$"
for host in h1 h2; do ! on $host test -e /root/imported || fail "PyTorch was imported on $host"; done

# It is the host's own library that is used.
rm "$work/host2/torch/lib/libtorch_cuda.so"
train 2 venv
expect_error "^  h2: .*$bundle/dtool-trainer lacks libtorch_cuda\.so"
dtool kill --all --yes --delete >/dev/null 2>&1
