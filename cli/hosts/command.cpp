// SPDX-License-Identifier: MIT
// `dtool command`: runs a command on all hosts at once.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "cli/action.h"
#include "cli/command_output.h"
#include "cli/host_options.h"
#include "cli/host_output.h"
#include "cli/options.h"
#include "cli/record/recorded.h"
#include "cli/visit/exec.h"
#include "ssh/program/askpass.h"
#include "ssh/quote.h"

namespace dtool::cli {
namespace {

constexpr const char* kGpuTable = "nvidia-smi | head -n 35";
/// The same, for any login shell, but with the exit code of nvidia-smi and not that of head: a host
/// without it has failed.
constexpr const char* kGpuTableOrFailure =
    "sh -c 'table=$(nvidia-smi); code=$?; "
    "[ -z \"$table\" ] || printf \"%s\\n\" \"$table\" | head -n 35; exit $code'";
constexpr int kNotFound = 127;

/// Standard input, for all hosts at once.
std::shared_ptr<const ssh::SharedBytes> standard_input() {
  ssh::SharedBytes bytes;
  bytes.most_unsent = std::uint64_t{64} << 20U;
  bytes.make = [](const ssh::SharedBytes::Write& write) {
    constexpr int kPause = 100;  // milliseconds
    std::array<char, 65'536> piece;
    for (;;) {
      write({});  // it throws where nobody needs more
      pollfd input{STDIN_FILENO, POLLIN, 0};
      if (::poll(&input, 1, kPause) == 0) continue;
      const ssize_t count = ::read(STDIN_FILENO, piece.data(), piece.size());
      if (count == 0) return;
      if (count > 0) write({piece.data(), static_cast<std::size_t>(count)});
      if (count < 0 && errno != EINTR && errno != EAGAIN)
        throw std::runtime_error(
            fmt::format("standard input cannot be read: {}", std::strerror(errno)));
    }
  };
  return std::make_shared<const ssh::SharedBytes>(std::move(bytes));
}

/// `--sudo`: the command as root on every host, with one password for all that ask. It goes to
/// sudo's standard input as the first line, and nowhere else. sudo reads it there only if it asks,
/// so each host is asked first whether it does.
class Sudo {
 public:
  Sudo() = default;
  ~Sudo();
  Sudo(const Sudo&) = delete;
  Sudo& operator=(const Sudo&) = delete;

  /// Looks which hosts ask for a password, asks the user for it, and tries it on one of them, so
  /// that a wrong one is tried once. Returns the results of hosts where the command cannot be run.
  /// Throws UsageError if the password is wrong, or nobody can be asked for it.
  std::vector<std::optional<ssh::HostResult>> make_ready(ssh::Remote& remote);

  /// `line` as root, by sh. Its standard input is what follows `Command::input`.
  ssh::Command command(std::size_t host, const std::string& line) const;

 private:
  std::string password_;
  std::vector<bool> asks_;  ///< for each host
};

constexpr const char* kLook = "[ \"$(id -u)\" = 0 ] || LC_ALL=C exec sudo -k -n -- sh -c :";
/// What tells whether sudo has read the password: its exit code is kNotRead where that is left.
constexpr int kNotRead = 77;
constexpr const char* kTry =
    "LC_ALL=C exec sudo -k -S -p '' -- sh -c 'read -r x && exit 77; exit 0'";

/// $1: the command line. $2: `asks` where the input begins with the password, twice. It is tried by
/// itself first: after a wrong one sudo would read the command's input as others, and where it
/// reads none, as with some modules of PAM, the command must not. For the command itself it may ask
/// for none (NOPASSWD with arguments), so where sudo remembers who it is, it is given none, and
/// forgets it afterwards. A user may not signal root's processes: TERM and HUP go through sudo.
constexpr const char* kRun =
    "unset password; [ \"$(id -u)\" != 0 ] || exec sh -c \"$1\"; "
    "how=-n runs='-k -n'; give() { [ $how = -n ] || printf \"%s\\n\" \"$password\"; }; "
    "if [ \"$2\" = asks ]; then how=-S runs='-k -S'; IFS= read -r password || exit 1; "
    "give | LC_ALL=C sudo -S -p \"\" -- sh -c \"read -r x && exit 77; exit 0\"; "
    "code=$?; case $code in 0 | 77) ;; *) exit 1 ;; esac; "
    "if sudo -n -- sh -c : 2> /dev/null; then runs=-n; elif [ $code = 77 ]; then password=; fi; "
    "[ \"$code$runs\" = '0-k -S' ] || IFS= read -r x; fi; exec 3<&0; "
    "trap \"trap '' TERM HUP; give | sudo -k $how -p '' -- sh -c "
    "'kill -TERM 0; sleep 0.5; kill -KILL 0'\" TERM HUP; "
    "sudo $runs -p \"\" -- sh -c \"$1\" <&3 3<&- & wait $!; "
    "code=$?; [ \"$runs\" != -n ] || sudo -k; exit $code";

std::string line_of(std::vector<std::string> words) {
  words.insert(words.begin(), {"sh", "-c"});
  return ssh::quote_all(words);
}

bool has(const ssh::HostResult& result, std::string_view words) {
  return result.err.find(words) != result.err.npos;
}

/// What sudo said.
std::string said(const ssh::HostResult& result) {
  return result.err.substr(0, result.err.find_last_not_of(" \r\n") + 1);
}

ssh::HostResult refused(ssh::HostResult result) {
  if (result.failure != ssh::Failure::none) return result;
  result.error = result.exit_code == kNotFound ? "there is no sudo on this host"
                                               : fmt::format("sudo: {}", said(result));
  std::ranges::replace(result.error, '\n', ' ');
  return result;
}

Sudo::~Sudo() {
  ssh::wipe(password_);
}

std::vector<std::optional<ssh::HostResult>> Sudo::make_ready(ssh::Remote& remote) {
  ssh::Events nobody;
  ssh::RunOptions options;
  options.on_interrupt = ssh::OnInterrupt::leave;
  options.timeout = std::chrono::seconds(30);
  std::vector<ssh::Task> tasks;
  for (std::size_t i = 0; i < remote.hosts().size(); ++i)
    tasks.push_back({i, ssh::Command{.line = line_of({kLook})}});
  std::vector<ssh::HostResult> results = remote.run(std::move(tasks), nobody, options);
  std::vector<std::optional<ssh::HostResult>> known(results.size());
  std::vector<ssh::Host> asking;
  asks_.assign(results.size(), false);
  for (std::size_t i = 0; i < results.size(); ++i) {
    asks_[i] =
        results[i].failure == ssh::Failure::none && (has(results[i], "a password is required") ||
                                                     has(results[i], "authentication is required"));
    if (asks_[i]) asking.push_back(results[i].host);
    if (!asks_[i] && !results[i].ok()) known[i] = refused(std::move(results[i]));
  }
  if (asking.empty() || remote.interrupted()) return known;

  auto password = ssh::ask_secret(fmt::format("password of sudo on {}: ", fold_hosts(asking)));
  if (!password)
    throw UsageError(fmt::format("sudo asks for a password on {}, and there is no terminal to ask "
                                 "for it",
                                 fold_hosts(asking)),
                     "a rule with NOPASSWD in sudoers needs none");
  password_ = std::move(*password);
  for (std::size_t i = 0; i < asks_.size(); ++i) {
    if (!asks_[i]) continue;
    ssh::Command command{.line = line_of({kTry}), .input = password_ + "\n"};
    ssh::HostResult tried = remote.run({{i, command}}, nobody, options).front();
    ssh::wipe(command.input);
    if (tried.exit_code == kNotRead) continue;
    if (tried.ok() || remote.interrupted()) break;
    const bool is_hosts_own = tried.failure != ssh::Failure::none ||
                              has(tried, "is not allowed to") || has(tried, "not in the sudoers");
    if (!is_hosts_own)
      throw UsageError(
          fmt::format("sudo on {} does not take this password: {}", ssh::to_string(tried.host),
                      said(tried).substr(said(tried).rfind('\n') + 1)),
          "it was tried once, and nothing was run on any host");
    known[i] = refused(std::move(tried));
  }
  return known;
}

ssh::Command Sudo::command(std::size_t host, const std::string& line) const {
  ssh::Command command{.line = line_of({kRun, "sh", line, asks_[host] ? "asks" : "free"})};
  if (asks_[host]) command.input = password_ + "\n" + password_ + "\n";
  return command;
}

/// The hosts that are named, else those of the newest run.
class HostsPlace : public CommandPlace {
 public:
  void add_options(Options& command, std::string& line) override;
  Targets targets(Invocation& invocation) override;
  bool reads_standard_input() const override { return hosts_.hostfile == "-"; }

 private:
  HostOptions hosts_;
  bool yes_ = false;
};

void HostsPlace::add_options(Options& command, std::string& line) {
  add_host_options(command, hosts_);
  command.add_option("--command", line, "a command line for each host's login shell")
      .show_default();
  command.add_flag("--yes", yes_, "do not ask before using a recorded run's hosts");
}

Targets HostsPlace::targets(Invocation& invocation) {
  if (auto chosen = choose_targets(hosts_, invocation.settings.all())) return *chosen;
  const killfiles::Killfile run = recorded_run(
      "", "--runs_on names hosts; without it the command runs on those of the newest run");
  Targets recorded = recorded_targets(run, hosts_, invocation.settings.users());
  std::vector<ssh::Host> each_once;  // a scheduler's machines are reached through one host
  for (const HostMachines& host : machines_by_host(recorded.hosts, run))
    each_once.push_back(recorded.hosts[host.host]);
  recorded.hosts = each_once;
  recorded.slots.resize(each_once.size());
  const std::string hosts = fold_hosts(recorded.hosts);
  const std::string question = fmt::format("run it on the hosts of {}: {}?", run.run_id, hosts);
  const std::optional<bool> answer = yes_ ? true : invocation.console.ask(question);
  if (!answer)
    throw UsageError("no hosts were named",
                     fmt::format("--runs_on names them; --yes takes those of {}", run.run_id));
  if (!*answer) throw UsageError("nothing was run", "--runs_on names other hosts");
  return recorded;
}

class CommandAction : public Action {
 public:
  explicit CommandAction(std::unique_ptr<CommandPlace> place) : place_(std::move(place)) {}

  void add_options(Options& command) override {
    place_->add_options(command, command_);
    command_flag_ = command.find("--command");
    command.add_flag("--shell", shell_, "join the words after -- with blanks, as ssh does");
    command.add_option("--timeout SECONDS", timeout_, "end the command after this many seconds")
        .check(must_be_seconds);
    command.add_flag("--stdin", stdin_, "give standard input to the command on all hosts");
    command.add_flag("--fail_fast", fail_fast_,
                     "the first host that fails ends the command on the others");
    if (command_flag_)
      command.add_flag("--sudo", sudo_,
                       "as root: sudo's password is asked for once, for all hosts");
    add_output_options(command, output_);
  }

  int run(Invocation& invocation) override {
    take_program(invocation.program);
    if (stdin_ && place_->reads_standard_input())
      throw UsageError("--stdin and --hostfile - both read standard input",
                       "--runs_on names the hosts, or --hostfile a file");
    // Who waits for a first Ctrl-C's hosts would wait for an input that may never end.
    output_.on_interrupt = stdin_ ? ssh::OnInterrupt::leave : place_->on_interrupt();
    output_.tell = [this](std::size_t host, nlohmann::json& about) { place_->tell(host, about); };
    const Targets chosen = place_->targets(invocation);
    const auto remote = invocation.reach(chosen.hosts, chosen.connect);
    if (sudo_) unready_ = root_.make_ready(*remote);
    return show_output(invocation.console, *remote, output_, command_,
                       [&](ssh::Events& events) { return run_all(*remote, events); });
  }

 private:
  /// The words after `--`.
  void take_program(std::vector<std::string> words) {
    if (words.empty()) {
      if (shell_) throw UsageError("--shell joins the words after --, and there are none");
      if (!command_flag_)
        throw UsageError(
            "no program was named",
            "it goes after --: dtool exec RUN -- nvidia-smi; dtool ssh RUN is a shell");
      words_ = {command_};
      return;
    }
    if (command_flag_ && command_flag_->is_given())
      throw UsageError("--command and the words after -- both say what to run", "give one of them");
    const bool is_line = shell_ || words.size() == 1;
    command_ = is_line ? fmt::format("{}", fmt::join(words, " ")) : ssh::quote_all(words);
    if (command_.find_first_not_of(' ') == command_.npos)
      throw UsageError("the command after -- is empty");
    words_ = is_line ? std::vector{command_} : std::move(words);
  }

  ssh::Command command_for(std::size_t host) const {
    if (sudo_) return root_.command(host, words_.size() == 1 ? words_[0] : ssh::quote_all(words_));
    const bool shows_gpus = command_ == kGpuTable;
    return {.line = place_->line(
                host, shows_gpus ? std::vector<std::string>{kGpuTableOrFailure} : words_)};
  }

  std::vector<ssh::HostResult> run_all(ssh::Remote& remote, ssh::Events& events) const {
    const bool shows_gpus = command_ == kGpuTable;
    std::vector<std::optional<ssh::HostResult>> known =
        sudo_ ? unready_ : place_->make_ready(remote);
    known.resize(remote.hosts().size());
    std::vector<ssh::Task> tasks;
    ssh::RunOptions options;
    const auto input = stdin_ ? standard_input() : nullptr;
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (known[i]) {
        events.on_result(i, *known[i]);
        options.failed = known[i]->host;
      } else {
        ssh::Command command = command_for(i);
        command.input_from = input;
        tasks.push_back({i, std::move(command)});
      }
    }
    options.keep_output = ssh::KeepOutput::no;
    options.on_interrupt = output_.on_interrupt;
    if (timeout_ > 0) options.timeout = from_seconds(timeout_);
    if (fail_fast_) options.on_failure = ssh::OnFailure::end_others;
    auto results = remote.run(std::move(tasks), events, options);
    for (std::size_t i = 0; i < known.size(); ++i)
      if (known[i])
        results.insert(results.begin() + static_cast<std::ptrdiff_t>(i), std::move(*known[i]));
    for (ssh::HostResult& result : results) {
      if (result.failure == ssh::Failure::timed_out)
        result.hint = "--timeout sets how long a command may take";
      if (shows_gpus && result.failure == ssh::Failure::none && result.exit_code == kNotFound) {
        result.error = "there is no nvidia-smi, so dtool cannot tell its GPUs";
        result.hint = "it goes after --: dtool command -- uptime";
      }
    }
    return results;
  }

  std::unique_ptr<CommandPlace> place_;
  OutputOptions output_;
  std::string command_ = kGpuTable;  ///< for people
  std::vector<std::string> words_;   ///< one: a command line
  std::optional<Option> command_flag_;
  bool shell_ = false;
  double timeout_ = 0;
  bool fail_fast_ = false;
  bool stdin_ = false;
  bool sudo_ = false;
  Sudo root_;
  std::vector<std::optional<ssh::HostResult>> unready_;  ///< hosts where nothing can be run
};

}  // namespace

std::vector<std::optional<ssh::HostResult>> CommandPlace::make_ready(ssh::Remote&) {
  return {};
}

std::string CommandPlace::line(std::size_t, const std::vector<std::string>& words) const {
  return words.size() == 1 ? words.front() : ssh::quote_all(words);
}

std::unique_ptr<Action> make_command_at(std::unique_ptr<CommandPlace> place) {
  return std::make_unique<CommandAction>(std::move(place));
}

std::unique_ptr<Action> make_command() {
  return make_command_at(std::make_unique<HostsPlace>());
}

}  // namespace dtool::cli
