#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The bundled trainer on three hosts reaches the accuracy that the seed's network reaches on one: 96.4 % on MNIST, where
# its files are (DTOOL_MNIST_DIR), and as much on the digits that need no files.
source "$(dirname "$0")/harness.sh"
needs_isolation
[[ -x ${DTOOL_TRAINER:-} ]] || skip 'needs dtool-trainer, which was not built'
lab 3
at_least() { awk -v wanted="$1" -v got="$(sed -n 's/.*test accuracy \(0\.[0-9]*\).*/\1/p' "$out" | tail -n 1)" 'BEGIN { exit !(got >= wanted) }' || fail "the test accuracy is below $1"; }
experiments=$source_folder/trainer/experiments

cp "$experiments/digits.toml" "$experiments/mnist.toml" .
expect_exit 0 timeout 250 "$DTOOL" run --follow --seed 1 --runs_on "$DTOOL_LAB_HOSTS" --config_kwargs '{"train":{"epochs":3}}' digits.toml
at_least 0.9
# The sessions take leave of each other.
eventually 10 expect_no_process_with "$(basename "$HOME"/.dtool/killfiles/*.killfile .killfile)"
expect_exit 0 timeout 60 "$DTOOL" kill --all --yes --delete
expect_error ': 0 processes ended on '

[[ -n ${DTOOL_MNIST_DIR:-} ]] || skip "DTOOL_MNIST_DIR does not name a folder with MNIST's four files"
expect_exit 0 timeout 250 "$DTOOL" run --follow --seed 1 --runs_on "$DTOOL_LAB_HOSTS" --export DTOOL_MNIST_DIR mnist.toml
at_least 0.964
