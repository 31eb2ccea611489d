#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The trainer's wheel brings dtool-trainer into an environment of Python, and trains with that environment's LibTorch. Where
# there is another PyTorch or none, both versions are named. dtool beside it runs it and sends it to hosts.
# tests/cuda_build does the same with pip's PyTorch; here a stand-in has its place.
source "$(dirname "$0")/harness.sh"
source "$here/pytorch_stand_in.sh"
needs_isolation
for program in zip cmake objdump; do needs_program $program; done
build=$(dirname "$DTOOL")
version=$(dtool --version)
version=${version#dtool }
make_pytorch

# ---- the same build always gives the same wheel
# shellcheck disable=SC2016
printf '%s\n' '#!/bin/bash' 'cmake "$@" && patchelf --add-needed libtorch_cuda.so "${@: -1}/bin/dtool-trainer-worker"' >"$work/cmake"
chmod +x "$work/cmake"
make_wheel() {
  expect_exit 0 env CMAKE="$work/cmake" OBJDUMP=objdump LD_LIBRARY_PATH="$pytorch/torch/lib:$pytorch/nvidia/other/lib" \
    "$source_folder/packages/make_trainer_wheel" "$build" "$version" "$(uname -m)" 'trains networks' "$pytorch/torch" "$work/$1"
}
make_wheel first
make_wheel second
wheel=$(echo "$work/first/dtool_trainer-$version"-py3-none-manylinux_2_*_"$(uname -m).whl")
cmp "$wheel" "$work/second/${wheel##*/}"

# ---- pip looks for the PyTorch that it was built with, and brings programs without LibTorch
environment=$work/environment
/usr/bin/python3 -m venv --without-pip "$environment"
site=$(echo "$environment"/lib/python3*/site-packages)
install() {
  env PYTHONPATH="$(echo /usr/share/python-wheels/pip-*.whl)" "$environment/bin/python3" -m pip install --no-index --disable-pip-version-check "$@"
}
expect_exit 1 install "$wheel"
expect_error 'No matching distribution found for torch==1\.13\.\*'
expect_exit 0 install --no-deps "$wheel"
expect_file "$(echo "$site"/dtool_trainer/lib/libtomlplusplus.so.*)"
expect_equal '' "$(find "$site/dtool_trainer/lib" -regextype egrep -regex '.*/lib(torch|c10|openblas|c\.|m\.|stdc).*')"
# shellcheck disable=SC2016
expect_equal inside "$(readelf -d "$site"/dtool_trainer/bin/* | sed -n 's/.*RPATH.*\[\(.*\)\]/\1/p' | tr : '\n' | sed 's,^$ORIGIN/\.\./.*,inside,' | sort -u)"
expect_file "$site/dtool_trainer-$version.dist-info/licenses/LICENSE"
expect_file "$environment/share/dtool/experiments/digits.toml"

# ---- without that PyTorch both are named, and no code of it runs
trainer=$environment/bin/dtool-trainer
refused() {
  expect_exit 2 "$trainer" digits --nproc_per_node 2
  expect_equal "dtool-trainer: this trainer was built for PyTorch 1.13+cu117, and $1" "$(head -n 1 "$err")"
  expect_error "^hint: pip install .*'torch==1\.13\.\*'"
}
has_version() {
  rm -f "$site/torch/version.py"
  printf '%s\n' "$@" >"$site/torch/version.py"
}
refused "$environment has none"
copy_pytorch "$work/copy" 1.14.0+cu117
mv "$work"/copy/* "$site/"
refused "$site has 1.14.0+cu117"
expect_error 'built for PyTorch 1\.14$'
has_version "__version__ = '1.13.1+cpu'"
refused "$site has 1.13.1+cpu"
has_version "__version__ = '1.13.1' + open('imported', 'w').name"
refused "$site has one of an unknown version"
has_version "open('imported', 'w')" "__version__ = '1.13.0+cu117'"

# ---- it trains with the environment's LibTorch, whatever else the loader is told to search
mkdir "$work/other"
cp "$pytorch/torch/lib/libtorch_cuda.so" "$work/other/"
expect_exit 0 env LD_LIBRARY_PATH="$work/other" "$trainer-worker" --libraries
libtorch=$(sed -n 's/.*libtorch_cuda\.so => \([^ ]*\).*/\1/p' "$out")
expect_equal "$site/torch/lib/libtorch_cuda.so" "$(readlink -f "$libtorch")"
expect_exit 0 "$trainer" --self_check
ln -s "$trainer" "$work/dtool-trainer" # as pipx and uv have it
expect_exit 0 "$work/dtool-trainer" digits --nproc_per_node 2 --output_dir trained
expect_output '^test accuracy 0\.9[5-9]'

# ---- an environment that sees the PyTorch of another one
/usr/bin/python3 -m venv --without-pip "$work/sees"
sees=$(echo "$work"/sees/lib/python3*/site-packages)
mkdir "$work/elsewhere"
mv "$site"/{torch,nvidia} "$work/elsewhere/"
echo "$work/elsewhere" >"$sees/elsewhere.pth"
cp -r "$site/dtool_trainer" "$sees/"
expect_exit 0 "$work/sees/bin/python3" -c 'import sys, dtool_trainer; sys.argv[1:] = ["--libraries"]; dtool_trainer.worker()'
expect_output "libtorch_cuda\.so => $work/elsewhere/torch/lib/"
expect_no_output 'not found'
mv "$work"/elsewhere/* "$site/"
expect_no_file imported

# ---- dtool in the same environment runs it
cp "$work/bin/dtool" "$environment/bin/"
DTOOL=$environment/bin/dtool
as_root
lab 1
expect_exit 0 dtool run digits --runs_on local --config_kwargs '{"train":{"epochs":1}}' --follow
expect_output 'test accuracy 0\.'

# ---- and sends it to a host, which has the same PyTorch in an environment
copy_pytorch "$work/host1" 1.13.1+cu117
make_environment "$DTOOL_LAB_FOLDER/host1/root/venv" /root/venv "$work/host1"
disk_on h1 size=1m "$environment" # this machine's own is not there
bundles() { on h1 find /root/.dtool/trainers -name '????????????????????????????????????????????????????????????????' 2>/dev/null || true; }
train() { expect_exit "$1" dtool run digits --runs_on h1 --env_activate_path /root/venv --config_kwargs '{"train":{"epochs":1}}' --follow; }
has_version "__version__ = '1.14.0+cu117'"
train 2
expect_error "none can be sent: .*this trainer was built for PyTorch 1\.13\+cu117, and $site has 1\.14\.0\+cu117"
expect_equal '' "$(bundles)"
has_version "__version__ = '1.13.1+cu117'"
train 0
expect_output 'test accuracy 0\.'
bundle=$(bundles)
expect_equal "$(find "$site"/dtool_trainer/{bin,lib} -type f -printf '%f\n' | sort | xargs)" "$(on h1 ls "$bundle/lib" | sort | xargs)"
on h1 cat "$bundle/lib/dtool-trainer" | cmp - "$site/dtool_trainer/bin/dtool-trainer"
dtool kill --all --yes --delete >/dev/null 2>&1
