// SPDX-License-Identifier: MIT
// A subcommand: its flags and its work. Each has its own file; main.cpp has the table of them.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/options.h"
#include "cli/settings.h"
#include "ssh/fanout/fleet.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// dtool's exit codes.
inline constexpr int kAllWell = 0;
inline constexpr int kSomeFailed = 1;  ///< hosts or processes failed; each is named
inline constexpr int kNotDone = 2;     ///< nothing was started
inline constexpr int kInterrupted = 130;

/// dtool cannot do its job. what() is one sentence that names the thing at fault; the exit code is
/// kNotDone.
class UsageError : public std::runtime_error {
 public:
  explicit UsageError(const std::string& sentence, std::string hint = {})
      : std::runtime_error(hint.empty() ? sentence : sentence + "\nhint: " + hint) {}
};

/// How hosts are reached.
using Reach =
    std::function<std::unique_ptr<ssh::Remote>(std::vector<ssh::Host>, const ssh::ConnectOptions&)>;

/// What an action gets from main.
struct Invocation {
  Console& console;
  SettingsFiles& settings;
  std::vector<std::string> command_line;  ///< all of dtool's arguments, program first
  std::vector<std::string> program;       ///< the words after `--`
  Reach reach = ssh::make_fleet;          ///< a test puts in hosts that answer what it wrote down
};

struct Action {
  virtual ~Action() = default;
  virtual void add_options(Options& command) = 0;
  /// Returns the exit code. Throws UsageError and std::invalid_argument for mistakes of the user.
  virtual int run(Invocation& invocation) = 0;
};

std::unique_ptr<Action> make_attach();
std::unique_ptr<Action> make_check();
std::unique_ptr<Action> make_clean();
std::unique_ptr<Action> make_command();
std::unique_ptr<Action> make_completion();
std::unique_ptr<Action> make_config();
std::unique_ptr<Action> make_copy();
std::unique_ptr<Action> make_disconnect();
std::unique_ptr<Action> make_hosts();
std::unique_ptr<Action> make_install();
std::unique_ptr<Action> make_exec();
std::unique_ptr<Action> make_fetch();
std::unique_ptr<Action> make_forward();
std::unique_ptr<Action> make_kill();
std::unique_ptr<Action> make_list();
std::unique_ptr<Action> make_show();
std::unique_ptr<Action> make_diff();
std::unique_ptr<Action> make_logs();
std::unique_ptr<Action> make_plot();
std::unique_ptr<Action> make_rerun();
std::unique_ptr<Action> make_run();
std::unique_ptr<Action> make_ssh();
std::unique_ptr<Action> make_ssh_config();
std::unique_ptr<Action> make_status();
std::unique_ptr<Action> make_tensorboard();
std::unique_ptr<Action> make_trust();

}  // namespace dtool::cli
