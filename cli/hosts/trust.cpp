// SPDX-License-Identifier: MIT
// `dtool trust`: shows unknown hosts' keys and adds them to known_hosts after a yes. With
// --settings it shows the folder's own settings and accepts them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/host_options.h"
#include "cli/host_output.h"
#include "ssh/fanout/fleet.h"

namespace dtool::cli {
namespace {

/// In the order of ssh::HostKeyState.
constexpr std::array kStates = {"known",     "unknown",  "changed",    "revoked",
                                "certified", "doubtful", "unreachable"};

const char* name_of(ssh::HostKeyState state) {
  return kStates.at(static_cast<std::size_t>(state));
}

class TrustAction : public Action {
 public:
  void add_options(Options& command) override {
    add_host_options(command, hosts_);
    command
        .add_flag("--settings", settings_,
                  "accept the current ./dtool.toml, which decides about hosts and programs")
        .excludes(command.find("--runs_on").value())
        .excludes(command.find("--hostfile").value());
    command.add_flag("--yes", yes_, "accept without asking");
  }

  int run(Invocation& invocation) override {
    if (settings_) return trust_settings(invocation.console);
    const auto targets = choose_targets(hosts_, invocation.settings.all());
    if (!targets) throw UsageError("no hosts were named", "--runs_on names them");
    Console& console = invocation.console;
    const std::vector<ssh::HostKey> keys = ssh::scan_host_keys(targets->hosts, targets->connect);
    if (!console.json()) show(console, keys);
    std::vector<ssh::HostKey> unknown;
    bool all_well = true;
    for (const ssh::HostKey& key : keys) {
      if (key.state == ssh::HostKeyState::unknown)
        unknown.push_back(key);
      else if (key.state != ssh::HostKeyState::known)
        all_well = false;
    }
    const bool add = !unknown.empty() && may_add(console, unknown.size());
    if (add) {
      ssh::add_to_known_hosts(unknown);
      console.note(fmt::format(
          "added {} to {}", unknown.size() == 1 ? "1 key" : fmt::format("{} keys", unknown.size()),
          unknown.front().known_hosts.string()));
    }
    if (!unknown.empty() && !add) all_well = false;
    const int exit_code = all_well ? kAllWell : kSomeFailed;
    return console.json() ? report_json(console, keys, add ? unknown.size() : 0, exit_code)
                          : exit_code;
  }

 private:
  static void show(Console& console, const std::vector<ssh::HostKey>& keys) {
    for (const ssh::HostKey& key : keys) {
      const std::string host = ssh::to_string(key.host);
      switch (key.state) {
        case ssh::HostKeyState::known:
          console.note(fmt::format("{}: known", host));
          break;
        case ssh::HostKeyState::unknown:
          console.complain(fmt::format("{}: {} {}", console.styled_error(Style::bold, host),
                                       key.type, key.fingerprint));
          break;
        default:
          console.fail(fmt::format("{}: {}", host, key.error), key.hint);
          break;
      }
    }
  }

  bool may_add(Console& console, std::size_t unknown) const {
    if (yes_) return true;
    if (console.json()) return false;  // a question would stand where a program cannot answer
    const auto answer = console.ask(fmt::format(
        "compare with what the hosts' owners told you; accept {}?", counted(unknown, "key")));
    if (!answer)
      console.fail("no key was added: there is no terminal to ask on",
                   "--yes accepts all keys shown above");
    if (answer == false) console.note("no key was added");
    return answer.value_or(false);
  }

  static int report_json(Console& console, const std::vector<ssh::HostKey>& keys, std::size_t added,
                         int exit_code) {
    nlohmann::json hosts = nlohmann::json::array();
    for (const ssh::HostKey& key : keys) {
      nlohmann::json host = {{"host", ssh::to_string(key.host)}, {"state", name_of(key.state)}};
      if (!key.fingerprint.empty())
        host.update({{"type", key.type}, {"fingerprint", key.fingerprint}});
      if (!key.error.empty()) host.update({{"error", key.error}, {"hint", key.hint}});
      hosts.push_back(std::move(host));
    }
    console.document({{"added", added}, {"exit_code", exit_code}, {"hosts", hosts}});
    return exit_code;
  }

  int trust_settings(Console& console) const {
    const auto file = read_project_file("dtool.toml");
    if (!file) {
      throw UsageError(
          fmt::format("there is no dtool.toml in {}", std::filesystem::current_path().string()));
    }
    const std::string path = file->path.string();
    bool accepted = is_accepted(*file);
    const bool was_accepted = accepted;
    if (!accepted && !console.json()) {
      console.complain(fmt::format("{}:\n{}", console.styled_error(Style::bold, path), file->text));
      console.complain(fmt::format("to be accepted: {}", fmt::join(file->to_accept, ", ")));
    }
    if (!accepted && !yes_ && !console.json()) {
      const auto answer = console.ask("accept these settings of the folder?");
      if (!answer)
        console.fail("nothing was accepted: there is no terminal to ask on",
                     "--yes accepts what is shown above");
      accepted = answer.value_or(false);
    }
    accepted = accepted || yes_;
    if (accepted && !was_accepted) accept(*file);
    const int exit_code = accepted ? kAllWell : kSomeFailed;
    if (console.json()) {
      console.document({{"file", path},
                        {"keys", file->to_accept},
                        {"accepted", accepted},
                        {"exit_code", exit_code}});
    } else {
      console.note(fmt::format("{}: {}", path,
                               file->to_accept.empty() ? "nothing in it has to be accepted"
                               : was_accepted          ? "accepted before"
                               : accepted              ? "accepted, until it changes"
                                                       : "not accepted"));
    }
    return exit_code;
  }

  HostOptions hosts_;
  bool settings_ = false;
  bool yes_ = false;
};

}  // namespace

std::unique_ptr<Action> make_trust() {
  return std::make_unique<TrustAction>();
}

}  // namespace dtool::cli
