// SPDX-License-Identifier: MIT
#include "cli/copy/copy_to_hosts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/copy/fetch_plan.h"
#include "cli/host_output.h"
#include "cli/ready/tree_push.h"
#include "killfiles/nearest.h"
#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/machine/files.h"
#include "ssh/machine/interrupts.h"
#include "ssh/quote.h"
#include "ssh/wire/copy.h"
#include "ssh/wire/words.h"

namespace dtool::cli {

namespace {

namespace fs = std::filesystem;
using tree_sync::CopyHost;
using tree_sync::Copying;

/// The process that copies: who the machine is, pid and start time.
std::string name_of_launcher() {
  const auto itself = host::find_process(::getpid());
  return fmt::format("{} {} {}", host::identify_host(), ::getpid(), itself ? itself->start : 0);
}

/// A process of this machine.
struct ProcessHere {
  pid_t pid = 0;
  std::uint64_t start = 0;

  bool has_ended() const { return !host::find_process(pid, start); }
};

/// The one of such a name, as a host gives it back; nothing if it is another machine's.
std::optional<ProcessHere> process_here(std::string_view name) {
  const std::string machine = host::identify_host() + " ";
  if (!name.starts_with(machine)) return std::nullopt;
  name.remove_prefix(machine.size());
  const auto pid = host::parse_number<pid_t>(host::cut(name, ' '));
  const auto start = host::parse_number<std::uint64_t>(name);
  if (!pid || !start) return std::nullopt;
  return ProcessHere{*pid, *start};
}

/// Which hosts refuse to be copied to, and why.
std::vector<CopyHost> refusals(const std::vector<CopyHost>& hosts) {
  std::vector<CopyHost> refused;
  for (CopyHost host : hosts) {
    ssh::HostResult& result = host.result;
    const host::CopyReply& reply = host.reply;
    // A host that cannot be reached holds back nobody.
    if (result.failure != ssh::Failure::none) continue;
    if (result.ok() && !reply.blocked.empty()) {
      result.fail(fmt::format("{}", fmt::join(reply.blocked, "; ")), reply.blocked_hint);
    } else if (result.ok() && host.room > reply.free) {
      result.fail(
          fmt::format("too little room for {}: {} bytes ({}) are needed there and {} bytes ({}) "
                      "are free",
                      reply.folder, host.room, size_text(host.room), reply.free,
                      size_text(reply.free)),
          "free some space there, or name a folder on another disk");
    }
    if (!result.ok()) refused.push_back(std::move(host));
  }
  return refused;
}

/// Another copy may have ended without telling; from this machine that can be seen.
void settle_owners(Copying& copying) {
  for (std::size_t i = 0; i < copying.hosts().size(); ++i) {
    const CopyHost& host = copying.hosts()[i];
    if (!host.result.ok() || host.reply.owner.empty()) continue;
    const auto owner = process_here(host.reply.owner);
    if (owner && owner->has_ended()) {
      copying.take_over(i, host.reply.owner);
      continue;
    }
    throw UsageError(
        fmt::format("another dtool copy is writing into {} on {}{}",
                    without_controls(host.reply.folder), ssh::to_string(host.result.host),
                    owner ? fmt::format(" (process {} here)", owner->pid) : ""),
        owner ? "wait until it has ended"
              : "wait until it has ended; one that was interrupted elsewhere is forgotten after "
                "two minutes");
  }
}

/// What was done on each host that has all, a line for hosts of which the same is true.
void tell(Console& console, const std::vector<CopyHost>& hosts, const tree_sync::CopyList& list) {
  std::map<std::string, std::vector<ssh::Host>> lines;
  for (const CopyHost& host : hosts) {
    if (!host.result.ok()) continue;
    std::string line = "all was there already";
    if (host.same_as && *host.same_as < hosts.size()) {
      line = fmt::format("sees the folder of {}", ssh::to_string(hosts[*host.same_as].result.host));
    } else if (host.entries > 0) {
      line = fmt::format("sent {} of {} files and folders, {}, into {}", host.entries,
                         list.entries.size(), size_text(host.lacked),
                         without_controls(host.reply.folder));
    }
    lines[line].push_back(host.result.host);
  }
  for (const auto& [line, names] : lines)
    console.note(fmt::format("{}  {}", console.styled_error(Style::bold, fold_hosts(names)), line));
}

/// Whose folders they are, if they are somebody else's.
void tell_strangers(Console& console, const std::vector<CopyHost>& hosts) {
  std::map<std::string, std::vector<ssh::Host>> folders;
  for (const CopyHost& host : hosts)
    if (host.result.ok() && !host.reply.stranger.empty())
      folders[host.reply.stranger].push_back(host.result.host);
  for (const auto& [stranger, names] : folders)
    console.note(
        fmt::format("{}: {}, who can change what is there; what was there is taken for the same "
                    "only by its SHA-256",
                    fold_hosts(names), without_controls(stranger)));
}

}  // namespace

tree_sync::CopyList list_to_copy(Console& console, const std::vector<std::string>& sources,
                                 const std::vector<std::string>& excludes) {
  const ssh::EndsAtOnce ends_at_once;  // no code listens for signals while this function looks
  console.progress("looking at what is to be copied");
  tree_sync::CopyList list;
  try {
    list = tree_sync::list_sources(sources, excludes);
  } catch (const std::runtime_error& error) {
    console.progress("");
    std::error_code unseen;
    const auto gone = std::ranges::find_if(
        sources, [&](const auto& each) { return !std::filesystem::exists(each, unseen); });
    throw UsageError(error.what(), gone == sources.end() ? "" : killfiles::nearest_file(*gone));
  }
  console.progress("");
  for (const std::string& each : list.skipped)
    console.note(fmt::format("{} is left out: only files, folders and links can be copied", each));
  if (list.entries.empty())
    throw UsageError(fmt::format("there is nothing to copy in {}", fmt::join(sources, " ")));
  return list;
}

std::string path_here(const std::string& text) {
  return ssh::from_home(text);
}

void require_path_of_hosts(const std::string& text) {
  const std::string first = text.substr(0, text.find('/'));
  if (first.starts_with('$') || (first.starts_with('~') && first != "~"))
    throw UsageError(fmt::format("{}: the hosts replace only ~/, and no variables", text),
                     "begin the path with / or ~/");
}

std::string folder_on_hosts(const std::string& text) {
  const std::string first = text.substr(0, text.find('/'));
  if (first.find(':') != first.npos)
    throw UsageError(fmt::format("{}: a folder on the hosts is named without a host", text),
                     "--runs_on names the hosts; a name with a colon begins with ./");
  require_path_of_hosts(text);
  const bool is_absolute = text.starts_with('/');
  const std::string below = text == "~" ? "" : text.starts_with("~/") ? text.substr(2) : text;
  std::string path = fs::path(is_absolute ? text : below).lexically_normal().native();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (is_absolute) return path;
  if (path == ".." || path.starts_with("../"))
    throw UsageError(fmt::format("{} leads out of the home folder", text), "name it from /");
  return "~/" + (path == "." ? "" : path);
}

Copied copy_to_hosts(Console& console, ssh::Remote& remote, tree_sync::CopyList& list,
                     const std::string& folder, tree_sync::Foreign foreign) {
  const std::string doing = fmt::format("copying to {}", folder);
  SendingReporter progress(console, "sending the files", remote.hosts(), kCopyInterrupted);
  Copying copying(remote, list, folder, name_of_launcher(), progress, foreign);
  console.progress(fmt::format("asking {} what they lack", counted(remote.hosts().size(), "host")));
  copying.ask();
  console.progress("");
  if (!remote.interrupted()) {
    settle_owners(copying);
    tell_strangers(console, copying.hosts());
    if (std::vector<CopyHost> refusing = refusals(copying.hosts()); !refusing.empty()) {
      report_failures(console, results_of(refusing), doing);
      console.complain("nothing was copied");
      return {kNotDone, std::move(refusing)};
    }
    for (std::size_t i = 0; i < copying.hosts().size(); ++i)
      if (!copying.hosts()[i].result.ok() || copying.hosts()[i].entries == 0) progress.done(i);
    copying.send();
    console.progress("");
  }
  note_missed(console, remote.hosts(), copying.missed(), "it");
  constexpr std::size_t kMostTold = 20;
  for (std::size_t i = 0; i < std::min(copying.spoilt().size(), kMostTold); ++i) {
    const auto& [host, name] = copying.spoilt()[i];
    console.note(fmt::format("{}: {} arrived with another SHA-256, and was sent again",
                             ssh::to_string(remote.hosts()[host]), without_controls(name)));
  }
  if (copying.spoilt().size() > kMostTold)
    console.note(
        fmt::format("{} files in all arrived with another SHA-256", copying.spoilt().size()));
  tell(console, copying.hosts(), list);
  const std::vector<ssh::HostResult> results = results_of(copying.hosts());
  // After Ctrl-C a note has said what it means.
  if (!remote.interrupted()) report_failures(console, results, doing);
  return {exit_code_of(results, remote), copying.hosts()};
}

namespace {

namespace fs = std::filesystem;

/// The same place there.
std::string place_there(const std::string& source) {
  const fs::path path = fs::absolute(source).lexically_normal();
  const auto below = ssh::below(path, ssh::home_folder());
  return below ? "~/" + below->native() : path.native();
}

}  // namespace

DataPlace place_of_data(const std::string& text) {
  const std::size_t colon = text.find(':');
  std::string source = path_here(text.substr(0, colon));
  while (source.size() > 1 && source.ends_with('/')) source.pop_back();
  std::string there = colon == text.npos ? "" : text.substr(colon + 1);
  if (source.empty() || (colon != text.npos && there.empty()) || there.find(':') != there.npos)
    throw UsageError(fmt::format("--data {}: it is not SRC or SRC:DST", text),
                     "a path with a colon can be copied before: dtool copy");
  std::error_code unseen;
  if (!fs::exists(source, unseen))
    throw UsageError(fmt::format("--data {}: there is no {}", text, source),
                     killfiles::nearest_file(source));
  if (there.empty()) there = place_there(source);
  if (fs::is_directory(source)) return {source + "/", folder_on_hosts(there)};
  const fs::path file = there;
  if (file.filename() != fs::path(source).filename())
    throw UsageError(fmt::format("--data {}: a file keeps its name, and {} is another one", text,
                                 file.filename().native()),
                     fmt::format("--data {}:{}", source,
                                 (file.parent_path() / fs::path(source).filename()).native()));
  const std::string folder = file.parent_path();
  return {source, folder_on_hosts(folder.empty() ? "~" : folder)};
}

std::string data_to_record(const std::string& text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const fs::path source = fs::absolute(path_here(text.substr(0, colon))).lexically_normal();
  return source.native() + text.substr(colon);
}

void leave_out_gone(Console& console, std::vector<std::string>& texts) {
  std::erase_if(texts, [&console](const std::string& text) {
    std::error_code unseen;
    const std::string source = path_here(text.substr(0, text.find(':')));
    if (fs::exists(source, unseen)) return false;
    console.note(
        fmt::format("--data {}: {} is gone here, and what the hosts have is used", text, source));
    return true;
  });
}

std::vector<RunData> list_data(Console& console, const std::vector<std::string>& texts) {
  std::vector<RunData> data;
  for (const std::string& text : texts) {
    const DataPlace place = place_of_data(text);
    data.push_back({list_to_copy(console, {place.source}, {}), place.folder});
  }
  return data;
}

bool supply_data(Console& console, ssh::Remote& remote, std::vector<RunData>& data,
                 tree_sync::Foreign foreign) {
  for (RunData& each : data)
    if (copy_to_hosts(console, remote, each.list, each.folder, foreign).exit_code != kAllWell)
      return false;
  return true;
}

}  // namespace dtool::cli
