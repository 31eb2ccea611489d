#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A trainer that is built for GPUs with a LibTorch outside a PyTorch stays on its machine: the host is told which LibTorch its own
# trainer needs.
source "$(dirname "$0")/harness.sh"
needs_program g++
lab 1

# Stands in for one: linked with a library of CUDA's name, and of a version that no host takes for this dtool's.
mkdir "$work/bin"
cp "$DTOOL" "$work/bin/dtool"
echo 'int cuda() { return 0; }' | g++ -x c++ -shared -fPIC -o "$work/bin/libtorch_cuda.so" -
cat >trainer.cpp <<'END'
#include <cstdio>
int cuda();
int main() { return cuda() + (std::puts("dtool-trainer 0.1.0 (LibTorch 2.9.1, backends gloo, nccl)") < 0); }
END
for name in dtool-trainer dtool-trainer-worker; do
  g++ trainer.cpp -o "$work/bin/$name" "-L$work/bin" -ltorch_cuda "-Wl,-rpath,$work/bin"
done
expect_exit 2 "$work/bin/dtool" run digits --runs_on h1
expect_error "none can be sent: this machine's trainer is built for GPUs with a LibTorch outside a PyTorch, and CUDA is not sent: the host needs a dtool-trainer of its own, built with LibTorch 2\\.9\\.1"
expect_error '^nothing was started'
