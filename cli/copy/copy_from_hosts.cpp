// SPDX-License-Identifier: MIT
#include "cli/copy/copy_from_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "cli/action.h"
#include "cli/copy/copy_to_hosts.h"
#include "cli/copy/fetch_plan.h"
#include "cli/failures.h"
#include "cli/ready/sending_progress.h"
#include "cli/terminal_text.h"
#include "ssh/machine/home_folder.h"
#include "sync/look.h"
#include "sync/pull.h"

namespace dtool::cli {
namespace {

namespace fs = std::filesystem;

/// One source, as hosts are told it.
struct Wanted {
  std::string path;  ///< absolute, or from `~/`
  std::string name;  ///< of what it becomes; empty: only what is in it is copied
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

class FromHosts {
 public:
  FromHosts(Console& console, ssh::Remote& remote, const fs::path& destination,
            tree_sync::Foreign foreign);

  void bring(const Wanted& wanted);
  /// A host counts as the same as another one if all sources are.
  std::vector<FromHost> take(std::size_t sources) {
    for (std::size_t i = 0; i < hosts_.size(); ++i)
      if (times_same_[i] < sources) hosts_[i].same_as.reset();
    return std::move(hosts_);
  }

 private:
  using Found = std::map<std::size_t, tree_sync::Source>;

  void look(const std::vector<std::size_t>& hosts, const tree_sync::Source& source, Found& found);
  void pull(const Wanted& wanted, const Found& found);
  fs::path make_folder(std::size_t host, const std::string& name) const;

  Console& console_;
  ssh::Remote& remote_;
  tree_sync::Foreign foreign_;
  std::vector<FromHost> hosts_;
  std::vector<std::size_t> times_same_;
};

FromHosts::FromHosts(Console& console, ssh::Remote& remote, const fs::path& destination,
                     tree_sync::Foreign foreign)
    : console_(console),
      remote_(remote),
      foreign_(foreign),
      hosts_(remote.hosts().size()),
      times_same_(hosts_.size()) {
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
                     Found& found) {
  std::vector<tree_sync::SourceQuestion> looks;
  for (const std::size_t host : hosts) looks.push_back({host, source});
  ssh::Events nobody;
  auto looked = tree_sync::look_at_sources(remote_, looks, nobody, std::chrono::seconds(60));
  for (std::size_t i = 0; i < looked.size(); ++i) {
    FromHost& host = hosts_[hosts[i]];
    host.result = std::move(looked[i].result);
    if (host.result.hint.find("the run") != std::string::npos) host.result.hint.clear();
    if (!host.result.ok()) continue;
    if (const auto same = looked[i].same_as) {
      host.same_as = hosts[*same];
      ++times_same_[hosts[i]];
    } else {
      found[hosts[i]] = source;
    }
  }
}

void FromHosts::pull(const Wanted& wanted, const Found& found) {
  std::vector<tree_sync::Pull> pulls;
  for (const auto& [host, source] : found) {
    const fs::path folder = make_folder(host, source.file.empty() ? wanted.name : "");
    if (remote_.hosts()[host].is_local) require_apart(source, folder);
    pulls.push_back({host, source, folder});
    pulls.back().foreign = foreign_;
  }
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
void FromHosts::bring(const Wanted& wanted) {
  std::vector<std::size_t> asked;
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    if (hosts_[i].result.ok()) asked.push_back(i);
  Found found;
  look(asked, {wanted.path}, found);
  const fs::path path = wanted.path;
  std::vector<std::size_t> again;
  for (const std::size_t i : asked) {
    const ssh::HostResult& result = hosts_[i].result;
    if (result.failure == ssh::Failure::none && !result.ok() && !wanted.name.empty())
      again.push_back(i);
  }
  if (!again.empty()) look(again, {path.parent_path(), wanted.name}, found);
  if (!remote_.interrupted()) pull(wanted, found);
}

}  // namespace

std::vector<FromHost> copy_from_hosts(Console& console, ssh::Remote& remote,
                                      const std::vector<std::string>& sources,
                                      const fs::path& destination, tree_sync::Foreign foreign) {
  std::map<std::string, std::string> named;
  for (const std::string& source : sources) {
    const std::string name = wanted_of(source).name;
    const auto [other, is_new] = named.try_emplace(name, source);
    if (!is_new && !name.empty())
      throw UsageError(
          fmt::format("{} and {} would both be copied to {}", other->second, source, name),
          "copy them into different folders");
  }
  FromHosts from(console, remote, destination, foreign);
  for (const std::string& source : sources)
    if (!remote.interrupted()) from.bring(wanted_of(source));
  std::vector<FromHost> hosts = from.take(sources.size());
  std::vector<ssh::HostResult> results;
  for (const FromHost& host : hosts) {
    results.push_back(host.result);
    if (!host.result.ok()) continue;
    const std::string name = console.styled_error(Style::bold, ssh::to_string(host.result.host));
    console.note(host.same_as
                     ? fmt::format("{}: the same as on {}", name,
                                   ssh::to_string(hosts[*host.same_as].result.host))
                     : fmt::format("{}: {}, {} into {}", name, counted(host.sent.files, "file"),
                                   size_text(host.sent.bytes), host.folder.native()));
  }
  report_failures(console, results, fmt::format("copying to {}", destination.native()));
  return hosts;
}

}  // namespace dtool::cli
