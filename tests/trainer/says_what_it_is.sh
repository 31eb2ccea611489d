#!/bin/bash
# SPDX-License-Identifier: MIT
# --version and --help, on stdout, with exit code 0.
. "$(dirname "$0")/harness.sh"
[[ $("$trainer" --version) =~ ^dtool-trainer\ [0-9.]+\ \(LibTorch\ [0-9.]+,\ backends\ gloo(, nccl)?\)$ ]] ||
  fail "--version says $("$trainer" --version)"
"$trainer" --help > help.log || fail "--help: exit code $?"
for flag in machine_id distributed_nodes nproc_per_node distributed_ip_and_port seed output_dir checkpoint \
  rendezvous_timeout; do
  grep -q -- "--$flag" help.log || fail "--help lacks --$flag"
done
