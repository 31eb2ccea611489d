// SPDX-License-Identifier: MIT
// A command as main() runs it: words in, exit code and what was written out. Hosts are fake ones.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/action.h"
#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/record/recorded.h"
#include "cli/settings.h"
#include "killfiles/killfile.h"
#include "tests/unit/fake_remote.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::tests {

/// Hands everything on to hosts that a test keeps.
struct KeptRemote : ssh::Remote {
  explicit KeptRemote(FakeRemote& kept) : kept_(kept) {}
  const std::vector<ssh::Host>& hosts() const override { return kept_.hosts(); }
  bool interrupted() const override { return kept_.interrupted(); }
  std::vector<ssh::HostResult> run(std::vector<ssh::Task> tasks, ssh::Events& events,
                                   const ssh::RunOptions& options) override {
    return kept_.run(std::move(tasks), events, options);
  }

 private:
  FakeRemote& kept_;
};

/// Standard input, for as long as it lives: a terminal at which that was typed; nothing: no
/// terminal.
class Typed {
 public:
  explicit Typed(const std::string& text) : before_(::dup(STDIN_FILENO)) {
    int shown = -1;
    if (text.empty() || ::openpty(&keyboard_, &shown, nullptr, nullptr, nullptr) != 0)
      shown = ::open("/dev/null", O_RDONLY);
    const auto size = static_cast<ssize_t>(text.size());
    EXPECT_TRUE(keyboard_ < 0 || ::write(keyboard_, text.data(), text.size()) == size);
    ::dup2(shown, STDIN_FILENO);
    ::close(shown);
    std::cin.clear();
  }
  Typed(const Typed&) = delete;
  Typed& operator=(const Typed&) = delete;
  ~Typed() {
    ::dup2(before_, STDIN_FILENO);
    ::close(before_);
    ::close(keyboard_);
  }

 private:
  int before_;
  int keyboard_ = -1;
};

struct CommandTest : testing::Test {
  /// The exit code; that of a mistake too, whose sentence is in `said` then.
  int run(cli::Action& action, std::vector<std::string> words) {
    CLI::App app;
    cli::Options options(app);
    action.add_options(options);
    std::ranges::reverse(words);  // as CLI11 wants them
    try {
      app.parse(words);
    } catch (const CLI::ParseError& error) {
      said = cli::explain(app, error, {}).what();
      return cli::kNotDone;
    }
    cli::Console console;
    console.configure({.json = is_json});
    cli::SettingsFiles settings({}, {});
    cli::Invocation invocation{console, settings, {"dtool"}, program};
    invocation.reach = [this](std::vector<ssh::Host> hosts, const ssh::ConnectOptions& connect) {
      FakeRemote& reached = fleets.emplace_back(std::move(hosts));
      connected.push_back(connect);
      if (on_reach) on_reach(reached);
      return std::make_unique<KeptRemote>(reached);
    };
    const Typed typing(typed);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    int code = cli::kNotDone;
    std::string mistake;
    try {
      code = action.run(invocation);
    } catch (const std::exception& error) {  // as main() tells a mistake
      mistake = error.what();
    }
    out = testing::internal::GetCapturedStdout();
    said = testing::internal::GetCapturedStderr() + mistake;
    return code;
  }

  /// Records a run with a machine on each of these hosts.
  killfiles::Killfile record(const std::string& run_id, const std::vector<std::string>& hosts) {
    killfiles::Killfile run = cli::new_killfile(run_id, {"dtool", "run"});
    for (const std::string& host : hosts) {
      const int id = static_cast<int>(run.machines.size());
      const std::string name = "machine" + std::to_string(id);
      run.machines.push_back({id, host, run_id + "_" + name, killfiles::state_folder(run_id, id),
                              "/outputs/" + name + ".log", ""});
    }
    write(run);
    return run;
  }
  void write(const killfiles::Killfile& run) { killfiles::write(folder(), run); }
  std::filesystem::path folder() const { return home.path() / ".dtool/killfiles"; }
  bool is_recorded(const std::string& run_id) const {
    return std::filesystem::exists(killfiles::path_of(folder(), run_id));
  }

  TemporaryFolder home;
  TemporaryVariable home_variable{"HOME", home.path()};
  std::function<void(FakeRemote&)> on_reach;   ///< writes down what the hosts answer
  std::deque<FakeRemote> fleets;               ///< those that were reached, in their order
  std::vector<ssh::ConnectOptions> connected;  ///< how
  std::string out;                             ///< of the last run(), on standard output
  std::string said;                            ///< and on standard error
  std::string typed;                           ///< on a terminal; empty: there is none
  std::vector<std::string> program;            ///< the words after `--`
  bool is_json = false;
};

}  // namespace dtool::tests
