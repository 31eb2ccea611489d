// SPDX-License-Identifier: MIT
#include "sync/contents.h"

#include <fcntl.h>
#include <fmt/compile.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "ssh/host/files.h"
#include "ssh/machine/encodings.h"
#include "ssh/machine/files.h"
#include "ssh/wire/words.h"
#include "sync/open_folder.h"

namespace dtool::tree_sync {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWord = 32;  // hex digits
/// A file that was written so lately could be written again within the same tick of its clock.
constexpr std::int64_t kCoarsestClock = 2;  // seconds

/// By which a file is known to be the one that was read, untouched.
std::string identity(const Look& look) {
  return fmt::format(FMT_COMPILE("{} {} {}.{} {}.{} "), look.inode, look.size, look.seconds,
                     look.nanoseconds, look.change_seconds, look.change_nanoseconds);
}

/// The words that were kept, in the order of the files' names.
class Kept {
 public:
  explicit Kept(const fs::path& path, const fs::path& root) {
    std::ifstream file(path, std::ios::binary);
    text_.assign(std::istreambuf_iterator<char>(file), {});
    rest_ = text_;
    if (host::cut(rest_, '\0') != root.native()) rest_ = {};
    name_ = host::cut(rest_, '\0');
  }

  /// The word for that file; nothing if it has changed. To be asked in the names' order.
  std::string_view find(const std::string& name, const std::string& identity) {
    for (; !name_.empty() && name_ < name; name_ = host::cut(rest_, '\0')) host::cut(rest_, '\0');
    if (name_ != name) return {};
    const std::string_view known = host::cut(rest_, '\0');
    name_ = host::cut(rest_, '\0');
    const bool holds = known.size() == identity.size() + kWord && known.starts_with(identity);
    return holds ? known.substr(identity.size()) : std::string_view{};
  }

 private:
  std::string text_;
  std::string_view rest_;
  std::string_view name_;  ///< the name whose identity and word come next
};

/// Nothing if it cannot be read.
std::string word_of(int file) {
  if (::lseek(file, 0, SEEK_SET) != 0) return {};
  ssh::Sha256 sha;
  std::string bytes(std::size_t{1} << 16, '\0');
  for (;;) {
    const ssize_t count = ::read(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return {};
    if (count == 0) return sha.hex().substr(0, kWord);
    sha.add({bytes.data(), static_cast<std::size_t>(count)});
  }
}

/// Nothing if it cannot be read, or is another file than the one that was looked at. It is read
/// again if it was changed meanwhile: another link to it is a change of that kind, too.
std::string read_content(const OpenFolder& root, const std::string& name, const Look& look) {
  const ssh::OwnedFd fd = root.open_file(name);
  Look before = look;
  for (int tries = 5; tries > 0 && is_as_seen(fd.get(), look); --tries) {
    std::string word = word_of(fd.get());
    struct stat status {};
    if (word.empty() || ::fstat(fd.get(), &status) != 0) return {};
    const Look after = look_of(status);
    if (identity(after) == identity(before)) return word;
    before = after;
  }
  return {};
}

std::string file_name(const fs::path& root) {
  ssh::Sha256 sha;
  sha.add(root.native());
  return sha.hex();
}

}  // namespace

std::vector<std::string> read_contents(const Tree& tree, const fs::path& folder, std::time_t now) {
  const OpenFolder root(tree.root);
  Kept kept(folder / file_name(tree.root), tree.root);
  const std::int64_t young = now - kCoarsestClock;
  std::vector<std::string> words(tree.files.size());
  std::string text;
  bool is_new = false;
  for (std::size_t i = 0; i < tree.files.size() && i < tree.looks.size(); ++i) {
    const Look& look = tree.looks[i];
    if (!S_ISREG(look.mode)) continue;
    const std::string known_by = identity(look);
    words[i] = kept.find(tree.files[i], known_by);
    if (words[i].empty()) {
      words[i] = read_content(root, tree.files[i], look);
      if (words[i].empty() || look.change_seconds >= young) continue;
      is_new = true;
    }
    text.append(tree.files[i]).push_back('\0');
    text.append(known_by).append(words[i]).push_back('\0');
  }
  if (!is_new) return words;
  try {
    keep_file(folder, file_name(tree.root), tree.root.native() + '\0', text);
  } catch (const fs::filesystem_error&) {
  }
  return words;
}

std::vector<std::string> read_contents(const Tree& tree) {
  return read_contents(tree, ssh::home_folder() / ".dtool" / "contents", std::time(nullptr));
}

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostLists = 8;

}  // namespace

std::vector<fs::path> newest_first(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  fs::directory_iterator each(folder, error);
  for (; !error && each != fs::directory_iterator(); each.increment(error)) {
    std::error_code gone;
    found.emplace_back(fs::last_write_time(*each, gone), each->path());
  }
  std::ranges::sort(found, std::greater<>());
  std::vector<fs::path> paths;
  for (auto& [time, path] : found) paths.push_back(std::move(path));
  return paths;
}

void keep_file(const fs::path& folder, const std::string& name, std::string_view begin,
               std::string_view rest) {
  ::mkdir(folder.parent_path().c_str(), 0700);
  ::mkdir(folder.c_str(), 0700);
  fs::permissions(folder, fs::perms::owner_all);  // throws if the folder could not be made
  const fs::path unfinished = folder / fmt::format("new.{}", ::getpid());
  try {
    const ssh::OwnedFd file(
        ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    host::write_all(file.get(), begin);
    host::write_all(file.get(), rest);
    host::flush_to_disk(file.get(), unfinished);
    fs::rename(unfinished, folder / name);
  } catch (const fs::filesystem_error&) {
    std::error_code ignored;
    fs::remove(unfinished, ignored);
    throw;
  } catch (const std::runtime_error&) {
    std::error_code ignored;
    fs::remove(unfinished, ignored);
    throw fs::filesystem_error("cannot write", unfinished,
                               std::make_error_code(std::errc::io_error));
  }
  const auto kept = newest_first(folder);
  for (std::size_t i = kMostLists; i < kept.size(); ++i) {
    std::error_code gone;
    fs::remove(kept[i], gone);
  }
}

}  // namespace dtool::tree_sync
