// SPDX-License-Identifier: MIT
// The password goes to sudo's standard input as the first line, and nowhere else. sudo reads it
// there only if it asks, so each host is asked first whether it does.
#include "cli/hosts/sudo.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/action.h"
#include "cli/host_output.h"
#include "ssh/program/askpass.h"
#include "ssh/program/secret_question.h"
#include "ssh/quote.h"

namespace dtool::cli {
namespace {

constexpr const char* kLook = "[ \"$(id -u)\" = 0 ] || LC_ALL=C exec sudo -k -n -- sh -c :";
constexpr const char* kTry = "LC_ALL=C exec sudo -k -S -p '' -- sh -c :";

/// $1: the command line. $2: `asks` where sudo asks for the password, the first line of the input.
/// It is tried by itself first: after a wrong one sudo would read the command's input as others. A
/// user may not signal root's processes, so TERM and HUP go to them through sudo.
constexpr const char* kRun =
    "[ \"$(id -u)\" != 0 ] || exec sh -c \"$1\"; "
    "how=-n; give() { [ $how = -n ] || printf \"%s\\n\" \"$password\"; }; "
    "if [ \"$2\" = asks ]; then how=-S; IFS= read -r password || exit 1; "
    "give | LC_ALL=C sudo -k -S -p \"\" -- sh -c : || exit 1; fi; exec 3<&0; "
    "trap \"trap '' TERM HUP; give | sudo -k $how -p '' -- sh -c "
    "'kill -TERM 0; sleep 0.5; kill -KILL 0'\" TERM HUP; "
    "{ give; exec cat <&3; } | sudo -k $how -p \"\" -- sh -c \"$1\" 3<&- & wait $!";

std::string line_of(std::vector<std::string> words) {
  words.insert(words.begin(), {"sh", "-c"});
  return ssh::quote_all(words);
}

bool has(const ssh::HostResult& result, std::string_view words) {
  return result.err.find(words) != result.err.npos;
}

/// All that sudo said, and its last line.
std::string said(const ssh::HostResult& result) {
  std::string text = result.err.substr(0, result.err.find_last_not_of(" \r\n") + 1);
  std::ranges::replace(text, '\n', ' ');
  return text;
}
std::string last_line(const ssh::HostResult& result) {
  const std::string text = result.err.substr(0, result.err.find_last_not_of(" \r\n") + 1);
  return text.substr(text.rfind('\n') + 1);
}

ssh::HostResult refused(ssh::HostResult result) {
  constexpr int kNoSudo = 127;
  if (result.failure != ssh::Failure::none) return result;
  result.error = result.exit_code == kNoSudo ? "there is no sudo on this host"
                                             : fmt::format("sudo: {}", said(result));
  return result;
}

}  // namespace

Sudo::~Sudo() {
  ssh::wipe(password_);
}

std::vector<std::optional<ssh::HostResult>> Sudo::make_ready(ssh::Remote& remote) {
  ssh::Events nobody;
  ssh::RunOptions options;
  options.on_interrupt = ssh::OnInterrupt::leave;
  std::vector<ssh::Task> tasks;
  for (std::size_t i = 0; i < remote.hosts().size(); ++i)
    tasks.push_back({i, ssh::Command{.line = line_of({kLook})}});
  std::vector<ssh::HostResult> results = remote.run(std::move(tasks), nobody, options);
  std::vector<std::optional<ssh::HostResult>> known(results.size());
  std::vector<ssh::Host> asking;
  asks_.assign(results.size(), false);
  for (std::size_t i = 0; i < results.size(); ++i) {
    asks_[i] =
        results[i].failure == ssh::Failure::none && has(results[i], "a password is required");
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
    if (tried.ok() || remote.interrupted()) break;
    const bool is_hosts_own = tried.failure != ssh::Failure::none ||
                              has(tried, "is not allowed to") || has(tried, "not in the sudoers");
    if (!is_hosts_own)
      throw UsageError(fmt::format("sudo on {} does not take this password: {}",
                                   ssh::to_string(tried.host), last_line(tried)),
                       "it was tried once, and nothing was run on any host");
    known[i] = refused(std::move(tried));
  }
  return known;
}

ssh::Command Sudo::command(std::size_t host, const std::string& line) const {
  ssh::Command command{.line = line_of({kRun, "sh", line, asks_[host] ? "asks" : "free"})};
  if (asks_[host]) command.input = password_ + "\n";
  return command;
}

}  // namespace dtool::cli
