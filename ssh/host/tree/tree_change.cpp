// SPDX-License-Identifier: MIT
#include "ssh/host/tree/tree_change.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <string_view>
#include <utility>

#include "ssh/host/files.h"
#include "ssh/host/tree/inside.h"
#include "ssh/host/tree/own_tree.h"
#include "ssh/wire/message.h"

namespace dtool::host {

namespace {

void add(TreeChange& change, CopyEntry entry, std::uint64_t place) {
  if (entry.name.ends_with('/')) {
    entry.name.pop_back();
    change.folders.push_back(
        {std::move(entry.name), static_cast<mode_t>(entry.mode) & kPermissions});
    return;
  }
  if (!change.files.empty() && entry.name <= change.files.back().entry.name)
    throw BadMessage("the tree's files are not sorted");
  change.files.push_back({std::move(entry), place});
}

FileNames names_in(const TreeChange& change) {
  FileNames names;
  for (const Listed& file : change.files) names.push_back(file.entry.name);
  return names;
}

std::string_view take_word(std::string_view& rest, char end) {
  const std::size_t size = rest.find(end);
  if (size == rest.npos) throw BadMessage("the tree's listing is not whole");
  const std::string_view taken = rest.substr(0, size);
  rest.remove_prefix(size + 1);
  return taken;
}

template <typename Number>
void read(Number& number, std::string_view digits, int base = 10) {
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size())
    throw BadMessage("the tree's listing has a number that is none");
}

}  // namespace

TreeChange read_listing(std::string_view text) {
  TreeChange change;
  for (std::uint64_t place = 0; !text.empty(); ++place) {
    CopyEntry entry;
    entry.name = take_word(text, '\0');
    entry.sha256 = take_word(text, ' ');
    std::string_view facts = take_word(text, '\0');
    if (entry.name.ends_with('/')) {
      if (facts == "gone") continue;
      read(entry.mode, facts, 8);
    } else {
      read(entry.size, take_word(facts, ' '));
      read(entry.seconds, take_word(facts, '.'));
      read(entry.nanoseconds, take_word(facts, ' '));
      entry.nanoseconds /= 10;  // find's fractions have a digit more
      read(entry.mode, take_word(facts, ' '), 8);
      entry.target = facts;
    }
    add(change, std::move(entry), place);
  }
  change.names = names_in(change);
  return change;
}

TreeChange change_of(const Taken& taken, const FileNames& before) {
  TreeChange change;
  for (const CopyEntry& entry : taken.entries) add(change, entry, 0);
  FileNames gone = taken.names;
  std::ranges::sort(gone);
  change.names = names_of_both(names_without(before, gone), names_in(change));
  return change;
}

void make_own_tree_of_code(TreeFolder& folder, const OwnTree& own, const std::string& tree) {
  if (!own.code.empty()) {
    ::utimensat(AT_FDCWD, folder.path().c_str(), nullptr, 0);
    folder.stand_for(own.code);
  }
  make_own_tree(folder, own, tree);
}

void remove_old_stored_trees(std::int64_t unused) {
  const std::string all = expand_home("~/.dtool/code");
  // A run's folder has just been made there.
  const time_t now = change_of(expand_home("~/.dtool/runs")).value_or(0);
  for (const std::string& name : list_folder(all)) {
    const std::string path = all + "/" + name;
    const auto is_old = [&] { return change_of(path).value_or(0) < now - unused; };
    if (!is_old()) continue;
    TreeFolder folder(path);
    folder.take_lock();
    if (!is_old()) continue;  // used since
    Inside(all).remove_folder(name);
    // Its copy and the list of that go later, and the lock stays: another process may wait for it.
    for (const char* ending : {".manifest", ".whole", ".stamps"})
      ::unlink(folder.path_of(ending).c_str());
  }
}

}  // namespace dtool::host
