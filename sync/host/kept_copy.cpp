// SPDX-License-Identifier: MIT
#include "sync/host/kept_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stdexcept>

#include "sync/host/copy_file.h"

namespace dtool::host {
namespace {

std::string made(const std::string& path) {
  if (!make_folder(path)) throw Refused(with_reason("cannot make the folder " + path));
  return path;
}

}  // namespace

KeptCopy::KeptCopy(TreeFolder& folder)
    : folder_(folder), path_(made(folder.path_of(".copy"))), inside_(path_) {}

/// Whether the copy has that file of the folder. `record` has a name and a value in turn, and `at`
/// is the next name's place.
bool KeptCopy::has(const std::string& name, const std::string& stamp, const FileNames& record,
                   std::size_t& at) {
  while (at + 1 < record.size() && record[at] < name) at += 2;
  if (at + 1 >= record.size() || record[at] != name) return false;
  const auto file = inside_.look_at_file(name);
  return file && (mode_in(stamp) & kPermissions) == (file->st_mode & 07777U) &&
         record[at + 1] == identity_of_copy(*file) + " " + stamp;
}

FileNames KeptCopy::update(const FileNames& names, const FileNames& stamps) {
  const std::string list = folder_.path_of(".copied");
  const FileNames before = split_names(read_file(list, kLargestList).value_or(""));
  const auto clear = [this] {
    for (const std::string& each : inside_.list()) inside_.remove_folder(each);
  };
  // What an interruption left is of unknown origin.
  if (before.empty()) clear();
  FileNames files;
  FileNames stale;
  for (std::size_t i = 0, each = 0; each < before.size() || i < names.size();) {
    const bool is_gone = each < before.size() && (i == names.size() || before[each] < names[i]);
    if (is_gone) stale.push_back(before[each]);
    const bool is_both = !is_gone && each < before.size() && before[each] == names[i];
    if (is_gone || is_both) each += 2;
    if (!is_gone) ++i;
  }
  bool is_changed = false;
  FileNames identities;
  const auto begin_change = [&] {
    if (!is_changed && !write_in_place(list, ""))
      throw std::runtime_error("cannot write " + list + ": is the disk full?");
    is_changed = true;
  };
  try {
    if (!stale.empty()) begin_change();
    inside_.remove(stale);
    FileNames after;
    FileNames made;
    after.reserve(2 * names.size());
    std::size_t at = 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string& name = names[i];
      after.push_back(name);
      if (stamps[i].starts_with('l')) {
        after.emplace_back();
        identities.emplace_back();
        continue;
      }
      if (has(name, stamps[i], before, at)) {
        after.push_back(before[at + 1]);
      } else {
        begin_change();
        if (inside_.look_at_file(name)) inside_.remove({name});
        const Copied copied = copy_file(folder_.inside(), inside_, name);
        if (stamp_of(copied.source, name) != stamps[i])
          throw std::runtime_error(name + " was changed meanwhile");
        after.push_back(identity_of_copy(copied.copy) + " " + stamps[i]);
        made.push_back(name);
      }
      identities.push_back(after.back().substr(0, after.back().size() - stamps[i].size() - 1));
    }
    inside_.flush(made);
    if (is_changed) write_file(list, join_names(after));
    ::utimensat(AT_FDCWD, list.c_str(), nullptr, 0);
    return identities;
  } catch (const std::exception&) {
    ::unlink(list.c_str());
    clear();
    throw;
  }
}

void remove_old_copies() {
  constexpr std::int64_t kOld = 30 * 86400;
  constexpr std::string_view kEnding = ".copied";
  const std::string trees = expand_home("~/.dtool/trees");
  for (const std::string& name : list_folder(trees)) {
    const std::string list = trees + "/" + name;
    if (!name.ends_with(kEnding) || age_of(list).value_or(0) < kOld) continue;
    const std::string key = name.substr(0, name.size() - kEnding.size());
    const Descriptor lock = lock_file(trees + "/" + key + ".lock", 0);
    if (!lock.is_open() || age_of(list).value_or(0) < kOld) continue;
    ::unlink(list.c_str());
    Inside(trees).remove_folder(key + ".copy");
  }
}

}  // namespace dtool::host
