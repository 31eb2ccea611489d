// SPDX-License-Identifier: MIT
// What `dtool COMMAND --help` shows: an example first, and the flags that matter most. `--help all`
// shows all of them.
#pragma once

#include <string_view>

namespace dtool::cli {

struct ShortHelp {
  std::string_view command;
  std::string_view example;
  /// Empty: all flags of the command's own.
  std::string_view flags = {};
};

/// The flags that many commands have, and that matter most.
inline constexpr std::string_view kFirstSharedFlags = "--runs_on --hostfile --json";

inline constexpr ShortHelp kShortHelps[] = {
    {"config", "dtool config -w 'gpu[1-8]' --config_script setup.sh --follow"},
    {"command", "dtool command -w 'gpu[1-8]' -b -- uptime -p",
     "--fold --diff --outdir --timeout --stdin --fail_fast --sudo"},
    {"copy", "dtool copy -w 'gpu[1-8]' data/ /scratch/data"},
    {"run", "dtool run -w 'gpu[1-8]' -n 8 -- python train.py --lr 0.1",
     "--env_activate_path --environment --nproc_per_node --export --follow --resume --dry_run"},
    {"rerun", "dtool rerun last --seed 2",
     "--seed --config_kwargs --nproc_per_node --export --extra_tag --follow --dry_run"},
    {"status", "dtool status last --watch"},
    {"logs", "dtool logs last -f --grep loss"},
    {"exec", "dtool exec last -m 0 -- nvidia-smi",
     "--machine --timeout --stdin --fold --diff --outdir"},
    {"ssh", "dtool ssh last -m 1"},
    {"attach", "dtool attach last --machine 1"},
    {"forward", "dtool forward last 6006 8888:80"},
    {"tensorboard", "dtool tensorboard last --open"},
    {"ssh_config", "dtool ssh_config last >> ~/.ssh/config"},
    {"fetch", "dtool fetch last results --only '*.jsonl'"},
    {"plot", "dtool plot last last-1 --metrics loss", "--file --metrics --output --size --x_axis"},
    {"kill", "dtool kill last"},
    {"list", "dtool list lr=0.5 failed"},
    {"show", "dtool show last"},
    {"diff", "dtool diff last-1 last"},
    {"check", "dtool check -w 'gpu[1-8]' --env_activate_path '~/venv'",
     "--env_activate_path --container --modules --torchrun --no_trainer"},
    {"install", "dtool install -w 'gpu[1-8]' --env_activate_path '~/venv'",
     "--env_activate_path --container --modules"},
    {"clean", "dtool clean -w 'gpu[1-8]' --delete --older_than 30"},
    {"hosts", "dtool hosts --fold '@lab!gpu3'"},
    {"trust", "dtool trust -w 'gpu[1-8]'"},
    {"disconnect", "dtool disconnect -w gpu3"},
    {"completion", "dtool completion bash > ~/.local/share/bash-completion/completions/dtool"},
};

}  // namespace dtool::cli
