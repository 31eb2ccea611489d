// SPDX-License-Identifier: MIT
// What dtool keeps on this host, and its deletion.
#include "ssh/host/answers/answers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

#include "ssh/host/answers/survey.h"
#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/host/tree/inside.h"
#include "ssh/host/tree/own_tree.h"
#include "ssh/host/tree/tree_folder.h"
#include "ssh/host/versions.h"

namespace dtool::host {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCopyEnding = ".copied";  // kept_copy.h

/// A kind of which a folder holds one version for each hash.
struct HashedKind {
  const char* name;
  const char* folder;  ///< below ~/.dtool
};
constexpr HashedKind kHashed[] = {{"environment", "environments"},
                                  {"trainer", "trainers"},
                                  {"dtool_host", "host"},
                                  {"packages", "wheels"}};

std::uint64_t bytes_in(const std::string& path) {
  constexpr std::uint64_t kBlock = 512;  // as st_blocks counts
  std::uint64_t sum = 0;
  std::error_code gone;
  fs::recursive_directory_iterator each(path, fs::directory_options::skip_permission_denied, gone);
  for (; !gone && each != fs::recursive_directory_iterator(); each.increment(gone)) {
    struct stat file;
    if (::lstat(each->path().c_str(), &file) == 0 && S_ISREG(file.st_mode))
      sum += static_cast<std::uint64_t>(file.st_blocks) * kBlock / file.st_nlink;
  }
  return sum;
}

/// By the clock of the file system, which may be another machine's.
time_t now_at(const std::string& folder) {
  std::string scratch = folder + "/.now.XXXXXX";
  const Descriptor file(::mkstemp(scratch.data()));
  struct stat made;
  if (!file.is_open() || ::fstat(file.get(), &made) != 0)
    throw Refused(with_reason("cannot write into " + folder));
  ::unlink(scratch.c_str());
  return made.st_mtim.tv_sec;
}

class Keeping {
 public:
  explicit Keeping(std::string home) : home_(std::move(home)), now_(now_at(home_)) {}

  std::vector<KeptThing> look() const;
  void remove_unused(std::int64_t unused) const;

 private:
  KeptThing thing(const char* kind, const std::string& path, std::int64_t used) const;
  std::string user_of(const std::string& kind, const std::string& path) const;

  std::string home_;  ///< ~/.dtool
  time_t now_;
};

KeptThing Keeping::thing(const char* kind, const std::string& path, std::int64_t used) const {
  KeptThing found{kind, with_tilde(path), bytes_in(path), std::max<std::int64_t>(now_ - used, 0)};
  found.used_by = user_of(kind, path);
  return found;
}

/// The run or program that uses a version.
std::string Keeping::user_of(const std::string& kind, const std::string& path) const {
  if (kind == "environment" || kind == "trainer")
    return run_that_uses(path.substr(path.rfind('/') + 1));
  // Another host with this home folder may run it for a run that goes on.
  if (kind == "dtool_host")
    return without_running({path}).empty() ? "a process" : run_that_uses("");
  return "";
}

std::vector<KeptThing> Keeping::look() const {
  std::vector<KeptThing> things;
  const auto add = [&](const char* kind, const std::string& path, const std::string& dated) {
    if (const auto used = change_of(dated)) things.push_back(thing(kind, path, *used));
  };
  for (const auto& [kind, folder] : kHashed)
    for (const std::string& name : list_folder(home_ + "/" + folder))
      if (is_hash(name))
        add(kind, home_ + "/" + folder + "/" + name, home_ + "/" + folder + "/" + name);
  for (const std::string& name : list_folder(home_ + "/code"))
    add("code", home_ + "/code/" + name, home_ + "/code/" + name);
  for (const std::string& name : list_folder(home_ + "/trees")) {
    const std::string list = home_ + "/trees/" + name;
    if (!name.ends_with(kCopyEnding)) continue;
    add("copy", list.substr(0, list.size() - kCopyEnding.size()) + ".copy", list);
  }
  const std::set<std::string> marked = marked_runs();
  for (const std::string& name : list_folder(home_ + "/runs")) {
    const std::string run = home_ + "/runs/" + name;
    if (!is_folder(run + "/tree")) continue;
    const auto ended = end_of_run(run);
    things.push_back(thing("run_tree", run + "/tree", ended.value_or(now_)));
    if (!ended || marked.contains(name)) things.back().used_by = name;
  }
  return things;
}

void Keeping::remove_unused(std::int64_t unused) const {
  for (const auto& [kind, folder] : kHashed) {
    if (!is_folder(home_ + "/" + folder)) continue;
    Inside all(home_ + "/" + folder);
    for (const std::string& path : unused_versions(home_ + "/" + folder, now_ - unused)) {
      if (!user_of(kind, path).empty()) continue;
      // A build of an environment holds it.
      const Descriptor lock = lock_file(path + "/lock", 0);
      if (lock.is_open()) all.remove_folder(path.substr(path.rfind('/') + 1));
    }
  }
  remove_old_trees(unused);
}

}  // namespace

KeptReply tell_kept(const KeptRequest& request) {
  const std::string home = expand_home("~/.dtool");
  KeptReply reply;
  if (!is_folder(home)) return reply;
  const Keeping keeping(home);
  reply.things = keeping.look();
  if (!request.deletes) return reply;
  keeping.remove_unused(std::max(request.unused_s, kLeastUnused));
  for (KeptThing& each : reply.things) each.is_deleted = !exists(expand_home(each.path));
  return reply;
}

}  // namespace dtool::host
