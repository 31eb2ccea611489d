# SPDX-License-Identifier: MIT
# Sourced by the tests of a trainer for GPUs: stands in for pip's PyTorch with CUDA, and for the trainer that was built with it.
# shellcheck shell=bash disable=SC2034,SC2154

# Makes them, and has DTOOL be one with that trainer beside it. The stand-in is this machine's LibTorch, at the places where
# pip has it and CUDA; it says so in the home folder where it is imported.
make_pytorch() {
  local program worker libtorch library to
  for program in patchelf g++; do needs_program "$program"; done
  [[ -x ${DTOOL_TRAINER:-} ]] || skip 'no dtool-trainer was built'
  pytorch=$work/launcher
  mkdir -p "$pytorch"/{torch,nvidia/other}/lib
  echo "open('/root/imported', 'w')" >"$pytorch/torch/__init__.py"
  echo "__version__ = '1.13.1+cu117'" >"$pytorch/torch/version.py"
  echo 'int cuda() { return 0; }' | g++ -x c++ -shared -fPIC -o "$pytorch/torch/lib/libtorch_cuda.so" -
  worker=$(dirname "$DTOOL_TRAINER")/dtool-trainer-worker
  libtorch=$(ldd "$worker" | sed -n 's/.*libtorch_cpu.* => \([^ ]*\).*/\1/p')
  while read -r library; do
    case ${library##*/} in
      libc.so* | libm.so* | libmvec.so* | libdl.so* | libpthread.so* | librt.so* | libresolv.so* | ld-linux*) continue ;;
      libtorch* | libc10*) to=torch ;;
      *) to=nvidia/other ;;
    esac
    ln -L "$library" "$pytorch/$to/lib/" 2>/dev/null || cp -L "$library" "$pytorch/$to/lib/"
  done < <(echo "$libtorch"; ldd "$libtorch" | sed -n 's/.* => \(\/[^ ]*\).*/\1/p')
  mkdir "$work/bin"
  cp "$DTOOL" "$DTOOL_TRAINER" "$worker" "$work/bin"
  patchelf --add-needed libtorch_cuda.so "$work/bin/dtool-trainer-worker"
  DTOOL=$work/dtool
  printf '%s\n' '#!/bin/sh' "export LD_LIBRARY_PATH=$pytorch/torch/lib:$pytorch/nvidia/other/lib" "exec $work/bin/dtool \"\$@\"" >"$DTOOL"
  chmod +x "$DTOOL"
}

# copy_pytorch FOLDER VERSION: another one with the same libraries, of that version.
copy_pytorch() {
  cp -lr "$pytorch" "$1"
  rm "$1/torch/version.py"
  echo "__version__ = '$2'" >"$1/torch/version.py"
}

# make_environment FOLDER PATH [PYTORCH]: a virtual environment in FOLDER, which is PATH where it is used; it has PYTORCH.
make_environment() {
  /usr/bin/python3 -m venv --without-pip "$1"
  sed -i "s,$1,$2," "$1/bin/activate"
  [[ -z ${3:-} ]] || ln -s "$3"/* "$("$1/bin/python3" -c 'import site; print(site.getsitepackages()[0])')"
}
