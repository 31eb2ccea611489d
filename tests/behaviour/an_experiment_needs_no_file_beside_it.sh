#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# An experiment's file runs in a folder that has nothing to send; a program there is refused.
source "$(dirname "$0")/harness.sh"
needs_file "${DTOOL_TRAINER:-/no/trainer}"

cp "$source_folder/trainer/experiments/digits.toml" "$work/mine.toml"
expect_exit 0 dtool run "$work/mine.toml" --config_kwargs '{"train": {"epochs": 1}, "data": {"train_samples": 500}}' --follow
expect_output 'epoch 1/1 done'
rm -r experiment_output
expect_exit 2 dtool run -- true
expect_error "^dtool: the code tree $work/here has no file to send\$"
