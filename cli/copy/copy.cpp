// SPDX-License-Identifier: MIT
// `dtool copy`: files and folders of this machine to all hosts, and back.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/action.h"
#include "cli/copy/copy_from_hosts.h"
#include "cli/copy/copy_to_hosts.h"
#include "cli/failures.h"
#include "cli/flag_values.h"
#include "cli/host_options.h"
#include "ssh/quote.h"

namespace dtool::cli {
namespace {

namespace fs = std::filesystem;

class CopyAction : public Action {
 public:
  void add_options(Options& command) override;
  int run(Invocation& invocation) override;

 private:
  int send(Invocation& invocation, const Targets& targets, const std::string& folder) const;
  int bring(Invocation& invocation, const Targets& targets, const std::string& destination) const;
  tree_sync::Foreign foreign() const {
    return force_ ? tree_sync::Foreign::overwrite : tree_sync::Foreign::refuse;
  }

  HostOptions hosts_;
  std::string from_;
  std::vector<std::string> words_;
  std::vector<std::string> excludes_;
  bool force_ = false;
};

void CopyAction::add_options(Options& command) {
  add_host_options(command, hosts_);
  command
      .add_option("PATH", words_,
                  "files and folders of this machine (data/ is what is in data); "
                  "last the folder on the hosts")
      .required();
  command
      .add_option("--from", from_,
                  "copy from these hosts to this machine, into a folder for each host")
      .check(must_not_be_empty)
      .type_name("HOSTS")
      .excludes(command.find("--runs_on").value())
      .excludes(command.find("--hostfile").value());
  command.add_option("--exclude", excludes_, "files not to copy; repeatable")
      .check(must_not_be_empty)
      .type_name("PATTERN")
      .one_value_each();
  command.add_flag(
      "--force", force_,
      "replace files that differ and did not come by dtool copy, or were edited since");
  command.footer(
      "A relative folder on the hosts begins in the home folder there.\n"
      "The same command again copies what differs, and goes on after an interruption.");
}

nlohmann::json document_of(const tree_sync::CopyHost& host, const std::vector<ssh::Host>& hosts) {
  nlohmann::json json = to_json(host.result);
  json.update({{"folder", host.reply.folder},
               {"lacked", host.entries},
               {"lacked_bytes", host.lacked},
               {"sent_bytes", host.sent}});
  if (host.same_as && *host.same_as < hosts.size())
    json["same_as"] = ssh::to_string(hosts[*host.same_as]);
  return json;
}

/// scp writes a host before the folder: `h1:x`.
std::string hint_at_hosts(std::vector<std::string> words) {
  const std::size_t colon = words.back().find(':');
  if (colon == 0 || colon == std::string::npos) return "--runs_on names them";
  const std::string host = words.back().substr(0, colon);
  words.back().erase(0, colon + 1);
  if (words.back().empty()) words.back() = "~";
  return fmt::format("--runs_on names them: dtool copy --runs_on {} {}", ssh::quote(host),
                     ssh::quote_all(words));
}

int CopyAction::run(Invocation& invocation) {
  if (words_.size() < 2)
    throw UsageError(fmt::format("where to copy {} is not said", words_.front()),
                     "the last word is a folder: dtool copy data --runs_on h1,h2 '~/x'");
  for (const std::string& word : words_)
    if (word.empty()) throw UsageError("a path is empty", "is a shell variable unset?");
  const bool is_back = !from_.empty();
  if (is_back) hosts_.runs_on = from_;
  const auto targets = choose_targets(hosts_, invocation.settings.all());
  if (!targets) throw UsageError("no hosts were named", hint_at_hosts(words_));
  const std::string destination = words_.back();
  words_.pop_back();
  if (!std::ranges::all_of(targets->hosts, &ssh::Host::is_local)) {
    for (const std::string& path : is_back ? words_ : std::vector{destination}) {
      const std::string note = note_on_home("", path);
      if (!note.empty()) invocation.console.note(note);
    }
  }
  if (!is_back) std::ranges::transform(words_, words_.begin(), path_here);
  return is_back ? bring(invocation, *targets, destination)
                 : send(invocation, *targets, folder_on_hosts(destination));
}

/// A folder that is copied into itself would grow with each copy.
void refuse_inside(const std::vector<std::string>& sources, const std::string& folder) {
  const fs::path there = fs::weakly_canonical(path_here(folder));
  for (const std::string& source : sources) {
    std::error_code unseen;
    if (!fs::is_directory(source, unseen)) continue;
    const fs::path below = there.lexically_relative(fs::canonical(source, unseen));
    const bool is_itself = below == "." && source.ends_with('/');
    if (!below.empty() && *below.begin() != ".." && !is_itself)
      throw UsageError(fmt::format("{} would be copied into itself: {}", source, there.native()));
  }
}

int CopyAction::send(Invocation& invocation, const Targets& targets,
                     const std::string& folder) const {
  Console& console = invocation.console;
  if (std::ranges::any_of(targets.hosts, &ssh::Host::is_local)) refuse_inside(words_, folder);
  tree_sync::CopyList list = list_to_copy(console, words_, excludes_);
  const auto remote = invocation.reach(targets.hosts, targets.connect);
  const Copied copied = copy_to_hosts(console, *remote, list, folder, foreign());
  if (console.json()) {
    nlohmann::json hosts = nlohmann::json::array();
    for (const tree_sync::CopyHost& host : copied.hosts)
      hosts.push_back(document_of(host, remote->hosts()));
    console.document({{"exit_code", copied.exit_code},
                      {"files", list.files},
                      {"bytes", list.bytes},
                      {"hosts", hosts}});
  }
  return copied.exit_code;
}

int CopyAction::bring(Invocation& invocation, const Targets& targets,
                      const std::string& destination) const {
  Console& console = invocation.console;
  if (!excludes_.empty())
    throw UsageError("--exclude does not go with --from",
                     "name the files and folders that are wanted");
  const fs::path folder = fs::absolute(path_here(destination)).lexically_normal();
  if (fs::exists(folder) && !fs::is_directory(folder))
    throw UsageError(fmt::format("{} is there and is no folder", folder.native()));
  const auto remote = invocation.reach(targets.hosts, targets.connect);
  const std::vector<FromHost> hosts = copy_from_hosts(console, *remote, words_, folder, foreign());
  std::vector<ssh::HostResult> results;
  nlohmann::json list = nlohmann::json::array();
  for (const FromHost& host : hosts) {
    results.push_back(host.result);
    nlohmann::json json = to_json(host.result);
    json.update(
        {{"folder", host.folder.native()}, {"files", host.sent.files}, {"bytes", host.sent.bytes}});
    if (host.same_as) json["same_as"] = ssh::to_string(hosts[*host.same_as].result.host);
    list.push_back(std::move(json));
  }
  const int exit_code = exit_code_of(results, *remote);
  if (console.json()) console.document({{"exit_code", exit_code}, {"hosts", list}});
  return exit_code;
}

}  // namespace

std::unique_ptr<Action> make_copy() {
  return std::make_unique<CopyAction>();
}

}  // namespace dtool::cli
