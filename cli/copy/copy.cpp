// SPDX-License-Identifier: MIT
// `dtool copy`: files and folders of this machine to all hosts, and back.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/copy/copy_to_hosts.h"
#include "cli/copy/fetch_plan.h"
#include "cli/host_options.h"
#include "cli/host_output.h"
#include "cli/options.h"
#include "cli/ready/tree_push.h"
#include "ssh/machine/files.h"
#include "ssh/quote.h"
#include "ssh/remote.h"
#include "sync/look.h"
#include "sync/pull.h"

namespace dtool::cli {

// `dtool copy --from`: files and folders of hosts to this machine, a folder for each host.

namespace {

namespace fs = std::filesystem;

/// What came from one host.
struct FromHost {
  ssh::HostResult result;
  std::filesystem::path folder;  ///< the folder on this machine
  tree_sync::Sent sent = {};
  std::optional<std::size_t> same_as = {};  ///< a host that sees the same folders: they came from
                                            ///< there
};

/// One source, as hosts are told it.
struct Wanted {
  std::string path;  ///< absolute, or from `~/`
  std::string name;  ///< the name of what it becomes; empty: only what is in it is copied
};

Wanted wanted_of(const std::string& source) {
  Wanted wanted{folder_on_hosts(source), ""};
  if (!source.ends_with('/') && wanted.path != "~/") wanted.name = fs::path(wanted.path).filename();
  return wanted;
}

/// The hosts' own names for files are not this machine's.
std::string folder_name(const ssh::Host& host) {
  std::string name = ssh::to_string(host);
  std::ranges::replace(name, '/', '_');
  return name;
}

/// A source on a host, as the host tells it.
struct Sighting {
  ssh::HostResult result;
  tree_sync::Source source;
  std::optional<std::size_t> same_as;  ///< a host that sees the same one
};

using Sightings = std::map<std::size_t, Sighting>;  // the key is the host

class FromHosts {
 public:
  FromHosts(Console& console, ssh::Remote& remote, const fs::path& destination,
            tree_sync::Foreign foreign);

  /// What came from the hosts.
  std::vector<FromHost> bring(const std::vector<Wanted>& sources);

 private:
  void find(const Wanted& wanted, const std::vector<std::size_t>& hosts, Sightings& seen);
  void look(const std::vector<std::size_t>& hosts, const tree_sync::Source& source,
            Sightings& seen);
  void pull(const Wanted& wanted, const Sightings& seen);
  fs::path make_folder(std::size_t host, const std::string& name) const;

  Console& console_;
  ssh::Remote& remote_;
  tree_sync::Foreign foreign_;
  std::vector<FromHost> hosts_;
};

FromHosts::FromHosts(Console& console, ssh::Remote& remote, const fs::path& destination,
                     tree_sync::Foreign foreign)
    : console_(console), remote_(remote), foreign_(foreign), hosts_(remote.hosts().size()) {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    hosts_[i].result.host = remote.hosts()[i];
    hosts_[i].result.exit_code = 0;
    hosts_[i].folder = destination / folder_name(remote.hosts()[i]);
  }
}

fs::path FromHosts::make_folder(std::size_t host, const std::string& name) const {
  const fs::path folder = name.empty() ? hosts_[host].folder : hosts_[host].folder / name;
  require_no_strangers(folder);
  std::error_code fault;
  fs::create_directories(folder, fault);
  if (fault)
    throw UsageError(
        fmt::format("cannot make the folder {}: {}", folder.native(), fault.message()));
  return folder;
}

void FromHosts::look(const std::vector<std::size_t>& hosts, const tree_sync::Source& source,
                     Sightings& seen) {
  std::vector<tree_sync::SourceQuestion> looks;
  for (const std::size_t host : hosts) looks.push_back({host, source});
  ssh::Events nobody;
  auto looked = tree_sync::look_at_sources(remote_, looks, nobody, std::chrono::seconds(60));
  for (std::size_t i = 0; i < looked.size(); ++i) {
    Sighting& sighting = seen[hosts[i]] = {std::move(looked[i].result), source, {}};
    if (const auto same = looked[i].same_as) sighting.same_as = hosts[*same];
  }
}

void FromHosts::pull(const Wanted& wanted, const Sightings& seen) {
  std::vector<tree_sync::Pull> pulls;
  for (const auto& [host, sighting] : seen) {
    if (!hosts_[host].result.ok()) continue;
    hosts_[host].result = sighting.result;
    if (!sighting.result.ok() || hosts_[host].same_as || remote_.interrupted()) continue;
    const tree_sync::Source& source = sighting.source;
    const fs::path folder = make_folder(host, source.file.empty() ? wanted.name : "");
    if (remote_.hosts()[host].is_local) require_apart(source, folder);
    pulls.push_back({host, source, folder});
    pulls.back().foreign = foreign_;
  }
  if (pulls.empty()) return;
  SendingReporter progress(console_, "receiving the files", remote_.hosts(), kCopyInterrupted);
  auto pulled = tree_sync::pull(remote_, pulls, progress);
  console_.progress("");
  for (std::size_t i = 0; i < pulled.size(); ++i) {
    FromHost& host = hosts_[pulls[i].host];
    host.result = std::move(pulled[i].result);
    host.sent.files += pulled[i].sent.files;
    host.sent.bytes += pulled[i].sent.bytes;
    if (pulled[i].has_foreign) host.result.hint += "; --force replaces it";
    const std::string name = ssh::to_string(host.result.host);
    if (!pulled[i].grown.empty())
      console_.note(fmt::format("{}: {}", name, grown_text(pulled[i].grown)));
    if (!pulled[i].skipped.empty())
      console_.note(fmt::format("{}: {}", name, skipped_text(pulled[i].skipped)));
  }
}

/// A source is a folder or a file; each host says for itself which it is.
void FromHosts::find(const Wanted& wanted, const std::vector<std::size_t>& hosts, Sightings& seen) {
  look(hosts, {wanted.path}, seen);
  const fs::path path = wanted.path;
  std::vector<std::size_t> again;
  for (const std::size_t host : hosts) {
    const ssh::HostResult& result = seen.at(host).result;
    if (result.failure == ssh::Failure::none && !result.ok() && !wanted.name.empty())
      again.push_back(host);
  }
  if (!again.empty()) look(again, {path.parent_path(), wanted.name}, seen);
}

std::vector<FromHost> FromHosts::bring(const std::vector<Wanted>& sources) {
  std::vector<std::size_t> asked;
  for (std::size_t host = 0; host < hosts_.size(); ++host) asked.push_back(host);
  std::vector<Sightings> seen;
  for (const Wanted& each : sources) {
    if (remote_.interrupted()) break;
    find(each, asked, seen.emplace_back());
    std::erase_if(asked, [&](std::size_t host) { return !seen.back().at(host).result.ok(); });
  }
  // Only a host that shares everything with one other has nothing of its own to send.
  for (const std::size_t host : asked) {
    std::set<std::optional<std::size_t>> same;
    for (const Sightings& each : seen) same.insert(each.at(host).same_as);
    if (same.size() == 1) hosts_[host].same_as = *same.begin();
  }
  for (std::size_t i = 0; i < seen.size(); ++i) pull(sources[i], seen[i]);
  return std::move(hosts_);
}

/// Copies the sources of all hosts of the Remote into `destination`, and names the hosts that
/// failed. Throws UsageError if it cannot be written. `foreign` is about files and links here.
std::vector<FromHost> copy_from_hosts(Console& console, ssh::Remote& remote,
                                      const std::vector<std::string>& sources,
                                      const fs::path& destination, tree_sync::Foreign foreign) {
  std::map<std::string, std::string> named;
  std::vector<Wanted> wanted;
  for (const std::string& source : sources) {
    const std::string name = wanted.emplace_back(wanted_of(source)).name;
    const auto [other, is_new] = named.try_emplace(name, source);
    if (!is_new && !name.empty())
      throw UsageError(
          fmt::format("{} and {} would both be copied to {}", other->second, source, name),
          "copy them into different folders");
  }
  std::vector<FromHost> hosts = FromHosts(console, remote, destination, foreign).bring(wanted);
  for (const FromHost& host : hosts) {
    if (!host.result.ok()) continue;
    const std::string name = console.styled_error(Style::bold, ssh::to_string(host.result.host));
    console.note(host.same_as
                     ? fmt::format("{}: the same as on {}", name,
                                   ssh::to_string(hosts[*host.same_as].result.host))
                     : fmt::format("{}: {}, {} into {}", name, counted(host.sent.files, "file"),
                                   size_text(host.sent.bytes), host.folder.native()));
  }
  report_failures(console, results_of(hosts), fmt::format("copying to {}", destination.native()));
  return hosts;
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

/// A folder that is copied into itself would grow with each copy.
void refuse_inside(const std::vector<std::string>& sources, const std::string& folder) {
  const fs::path there = fs::weakly_canonical(path_here(folder));
  for (const std::string& source : sources) {
    std::error_code unseen;
    if (!fs::is_directory(source, unseen)) continue;
    const auto below = ssh::below(there, fs::canonical(source, unseen));
    const bool is_itself = below == "." && source.ends_with('/');
    if (below && !is_itself)
      throw UsageError(fmt::format("{} would be copied into itself: {}", source, there.native()));
  }
}

class CopyAction : public Action {
 public:
  void add_options(Options& command) override {
    add_host_options(command, hosts_);
    command
        .add_option("PATH", words_,
                    "files and folders of this machine (data/ is what is in data); "
                    "last the folder on the hosts")
        .required();
    command
        .add_option("--from HOSTS", from_,
                    "copy from these hosts to this machine, into a folder for each host")
        .excludes(command.find("--runs_on").value())
        .excludes(command.find("--hostfile").value());
    command.add_option("--exclude PATTERN", excludes_, "files not to copy; repeatable");
    command.add_flag(
        "--force", force_,
        "replace files that differ and did not come by dtool copy, or were edited since");
    command.footer(
        "A relative folder on the hosts begins in the home folder there.\n"
        "The same command again copies what differs, and goes on after an interruption.");
  }

  int run(Invocation& invocation) override {
    if (words_.size() < 2)
      throw UsageError(fmt::format("where to copy {} is not said", words_.front()),
                       "the last word is a folder: dtool copy data --runs_on h1,h2 '~/x'");
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

 private:
  int send(Invocation& invocation, const Targets& targets, const std::string& folder) const {
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

  int bring(Invocation& invocation, const Targets& targets, const std::string& destination) const {
    Console& console = invocation.console;
    if (!excludes_.empty())
      throw UsageError("--exclude does not go with --from",
                       "name the files and folders that are wanted");
    const fs::path folder = fs::absolute(path_here(destination)).lexically_normal();
    if (fs::exists(folder) && !fs::is_directory(folder))
      throw UsageError(fmt::format("{} is there, but is not a folder", folder.native()));
    const auto remote = invocation.reach(targets.hosts, targets.connect);
    const std::vector<FromHost> hosts =
        copy_from_hosts(console, *remote, words_, folder, foreign());
    nlohmann::json list = nlohmann::json::array();
    for (const FromHost& host : hosts) {
      nlohmann::json json = to_json(host.result);
      json.update({{"folder", host.folder.native()},
                   {"files", host.sent.files},
                   {"bytes", host.sent.bytes}});
      if (host.same_as) json["same_as"] = ssh::to_string(hosts[*host.same_as].result.host);
      list.push_back(std::move(json));
    }
    const int exit_code = exit_code_of(results_of(hosts), *remote);
    if (console.json()) console.document({{"exit_code", exit_code}, {"hosts", list}});
    return exit_code;
  }

  tree_sync::Foreign foreign() const {
    return force_ ? tree_sync::Foreign::overwrite : tree_sync::Foreign::refuse;
  }

  HostOptions hosts_;
  std::string from_;
  std::vector<std::string> words_;
  std::vector<std::string> excludes_;
  bool force_ = false;
};

}  // namespace

std::unique_ptr<Action> make_copy() {
  return std::make_unique<CopyAction>();
}

}  // namespace dtool::cli
