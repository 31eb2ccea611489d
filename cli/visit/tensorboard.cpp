// SPDX-License-Identifier: MIT
// `dtool tensorboard`: TensorBoard beside a run, with its port as this machine's own. It runs until
// Ctrl-C; `dtool forward` runs beside it as a process of its own.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/action.h"
#include "cli/host_options.h"
#include "cli/host_output.h"
#include "cli/logs/attach.h"
#include "cli/options.h"
#include "cli/visit/exec.h"
#include "ssh/wire/words.h"

namespace dtool::cli {
namespace {

/// $1: its folder, or nothing: the run's outputs if there are events in them, else all of the run's
/// folder.
constexpr const char* kScript =
    "folder=$1\n"
    "[ -n \"$folder\" ] || [ -z \"$(find \"$DTOOL_OUTPUT_DIR\" -name '*tfevents*' -print -quit "
    "2> /dev/null)\" ] || folder=$DTOOL_OUTPUT_DIR\n"
    "set -- --logdir \"${folder:-.}\" --host 127.0.0.1 --port 0\n"
    "command -v tensorboard > /dev/null && exec tensorboard \"$@\"\n"
    "python3 -c 'import tensorboard' 2> /dev/null && exec python3 -m tensorboard.main \"$@\"\n"
    "exit 127";
constexpr int kNoTensorBoard = 127;
constexpr std::string_view kAddress = "http://127.0.0.1:";

/// A dtool that ends with this process, also where that is killed.
pid_t start_dtool(std::vector<std::string> words) {
  words.insert(words.begin(), std::filesystem::read_symlink("/proc/self/exe").native());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("this machine cannot start another dtool");
  if (child > 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::execv(arguments.front(), arguments.data());
  ::_exit(127);
}

class TensorboardAction : public Action, public ssh::Events {
 public:
  void add_options(Options& command) override {
    options_.emplace(command);
    command.add_option("RUN", id_, "a run's id or a part of it; last, last-1 (the newest run)");
    command.add_option("-m,--machine I", machine_, "the run's machine with this id or host (0)");
    command.add_option(
        "--logdir PATH", folder_,
        "a folder there (the run's outputs if there are events in them, else its folder)");
    command.add_flag("--open", open_, "show it in the web browser");
    add_connect_options(command, hosts_);
  }

  int run(Invocation& invocation) override {
    console_ = &invocation.console;
    killfiles::Killfile run = run_to_visit(id_);
    const std::size_t place = machine_.empty() ? 0 : find_machine(run, machine_);
    const std::string machine = std::to_string(run.machines[place].id);
    const std::string name = fmt::format("machine{} of {}", machine, run.run_id);
    const Targets targets = recorded_targets(run, hosts_, invocation.settings.users());
    target_ = {"forward", run.run_id, "--machine=" + machine};
    is_here_ = targets.hosts[place].is_local;
    const auto remote = invocation.reach({targets.hosts[place]}, targets.connect);
    run.machines = {run.machines[place]};
    if (const auto unready = find_unready(*remote, run)[0]) {
      report_failures(*console_, {*unready}, "looking for " + name);
      return remote->interrupted() ? kInterrupted : kSomeFailed;
    }
    const std::string line = visit_line(run, 0, {"sh", "-c", kScript, "sh", folder_});
    ssh::RunOptions options;
    options.on_interrupt = ssh::OnInterrupt::leave;
    ssh::HostResult result = remote->run({{0, ssh::Command{.line = line}}}, *this, options)[0];
    if (forwarding_ != 0 && ::kill(forwarding_, SIGTERM) == 0) ::waitpid(forwarding_, nullptr, 0);
    if (remote->interrupted()) return kInterrupted;
    if (result.failure == ssh::Failure::none && result.exit_code == kNoTensorBoard)
      result.error = "there is no tensorboard, neither in the run's environment nor on the host";
    if (!result.error.empty() && result.failure == ssh::Failure::none)
      result.hint = "pip install tensorboard there; or dtool fetch brings the outputs here";
    if (result.error.empty()) console_->complain(said_);
    report_failures(*console_, {result}, "TensorBoard on " + name);
    return kSomeFailed;
  }

  /// It says `TensorBoard 2.15.1 at http://127.0.0.1:38717/ (Press CTRL+C to quit)`.
  void on_output(std::size_t, ssh::Stream, std::string_view bytes) override {
    constexpr std::size_t kMost = 10'000;
    said_ += bytes;
    if (said_.size() > kMost) said_.erase(0, said_.size() - kMost);
    const std::size_t at = said_.find(fmt::format(" at {}", kAddress));
    if (has_port_ || at == said_.npos) return;
    const std::size_t begin = said_.find(kAddress, at) + kAddress.size();
    const std::size_t end = said_.find_first_not_of("0123456789", begin);
    if (end == said_.npos) return;
    if (const std::string port = said_.substr(begin, end - begin); host::parse_port(port))
      on_port(port);
  }

 private:
  void on_port(const std::string& port) {
    has_port_ = true;
    if (is_here_) {
      const std::string address = fmt::format("{}{}", kAddress, port);
      if (console_->json()) console_->document({{"forwarded", {{{"url", address}}}}});
      if (!console_->json()) console_->say(address);
      if (open_) open_in_browser(*console_, address);
      return;
    }
    std::vector<std::string> words = target_;
    words.insert(words.begin() + 2, port);
    for (const auto& [name, values] : options_->given()) {
      if (name == "--logdir" || name == "--machine") continue;
      for (const std::string& value : values) words.push_back(name + "=" + value);
    }
    forwarding_ = start_dtool(std::move(words));
  }

  HostOptions hosts_;
  std::string id_;
  std::string machine_;
  std::string folder_;
  bool open_ = false;

  Console* console_ = nullptr;
  std::optional<Options> options_;
  std::vector<std::string> target_;  ///< dtool forward's words for the machine
  bool is_here_ = false;
  std::string said_;
  bool has_port_ = false;
  pid_t forwarding_ = 0;  ///< dtool forward; 0: none
};

}  // namespace

std::unique_ptr<Action> make_tensorboard() {
  return std::make_unique<TensorboardAction>();
}

}  // namespace dtool::cli
