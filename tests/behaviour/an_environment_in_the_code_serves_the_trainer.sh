#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Where the environment is in the code folder, the code is sent before the hosts are asked for their trainer and its PyTorch: a run
# works the first time. `install` and `check` send no code, and say that `run` does.
# shellcheck disable=SC2088  # it is for the hosts to expand
source "$(dirname "$0")/harness.sh"
source "$here/pytorch_stand_in.sh"
needs_isolation
make_pytorch
as_root
lab 2
both=h1,h2
for host in 1 2; do make_environment "$DTOOL_LAB_FOLDER/host$host/root/venv" /root/venv "$pytorch"; done
cat >e.toml <<'END2'
workload = "classifier"
data.source = "digits"
data.train_samples = 1200
data.test_samples = 200
train.epochs = 1
END2
mkdir environment
echo '. ~/venv/bin/activate; cat "${BASH_SOURCE[0]%/*}/word" >/dev/null || return' >environment/activate
wanted="none can be sent: this machine's trainer is built for GPUs and uses the LibTorch of PyTorch 1\.13\.1\+cu117, and no Python there has a PyTorch"
nowhere() { for host in 1 2; do expect_no_file "$DTOOL_LAB_FOLDER/host$host/root/.dtool/trainers"; done; }

expect_exit 1 dtool install --runs_on "$both" --env_activate_path environment/activate
expect_error "hint: the environment is in the code folder, which dtool run EXPERIMENT\.toml sends"
expect_exit 1 dtool check --runs_on "$both" --env_activate_path environment/activate
expect_output 'there is no file /root/here/environment/activate'
expect_output 'hint: it is in the current folder, which dtool run sends'
nowhere

# What fails in it is named once it is there, and nothing starts.
expect_exit 2 dtool run e.toml --runs_on "$both" --env_activate_path environment/activate
expect_error "^  h\[1-2\]: --env_activate_path: .*environment/activate failed: .*word: No such file"
expect_error '^nothing was started'
expect_file "$DTOOL_LAB_FOLDER/host1/root/here/environment/activate"
nowhere

echo here >environment/word
expect_exit 0 dtool run e.toml --runs_on "$both" --env_activate_path environment/activate --follow
expect_output '2 ranks on 2 machines'
# The whole path, on hosts that have none of it yet.
for host in 1 2; do rm -r "$DTOOL_LAB_FOLDER/host$host/root/here" "$DTOOL_LAB_FOLDER/host$host/root/.dtool/trainers"; done
expect_exit 0 dtool run e.toml --runs_on "$both" --env_activate_path '~/here/environment/activate' --follow
expect_output '2 ranks on 2 machines'
expect_exit 0 dtool install --runs_on "$both" --env_activate_path '~/venv'
expect_output '^h\[1-2\]  there already: '
