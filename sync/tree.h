// SPDX-License-Identifier: MIT
// The code tree: which files of a folder go to the hosts.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::tree_sync {

/// What happens to a host's files that have names of what is sent, differ from it, and were not put
/// there by dtool or were changed since, and to changed files that a tree no longer has: the host
/// fails and names them, or they are overwritten and deleted.
enum class Foreign { refuse, overwrite };

/// The parts of lstat(2)'s answer that matter here.
struct Look {
  std::uint64_t size = 0;    ///< bytes
  std::int64_t seconds = 0;  ///< the last change, in seconds and nanoseconds since 1970
  std::uint32_t nanoseconds = 0;
  std::uint32_t mode = 0;  ///< the mode with the file's type
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  /// The last change of any kind (ctime), in seconds and nanoseconds.
  std::int64_t change_seconds = 0;
  std::uint32_t change_nanoseconds = 0;
};

Look look_of(const struct stat& status);

/// Whether both are of the same file with the same size and time.
bool is_same(const Look& one, const Look& other);

/// Whether an open file is the regular file that was looked at, and has its size and time.
bool is_as_seen(int file, const Look& look);

/// The files of one folder.
struct Tree {
  std::filesystem::path root;        ///< absolute, without symbolic links
  std::vector<std::string> files;    ///< relative to root; regular files and links; sorted bytewise
  std::uint64_t bytes = 0;           ///< the sum of the regular files' sizes
  std::vector<std::string> skipped;  ///< sockets, pipes and devices, which cannot be sent
  std::vector<Look> looks = {};      ///< one for each file, made when the tree was read
  std::vector<std::string> unused_excludes = {};  ///< patterns that matched nothing
  /// Where no git tells what belongs to the tree. A run's own tree gets them; a code folder does
  /// not.
  std::vector<std::string> empty_folders = {};
};

/// The files of `root`. In a checkout these are the files that git tracks or would add (inner
/// repositories are asked likewise); elsewhere all files but `.git`. Symbolic links are listed and
/// never followed. `excludes` are patterns. Folders of fetched outputs
/// (pull.h) are left out but for what git tracks there. `includes` are files and folders,
/// relative to `root`, which are taken though git ignores them or dtool fetched them. Throws
/// std::runtime_error with a sentence that names the folder or file at fault (missing, unreadable,
/// refused by git); std::invalid_argument on a pattern.
Tree read_tree(const std::filesystem::path& root, const std::vector<std::string>& excludes,
               const std::vector<std::string>& includes = {});

/// The tree of these files below `root`, regular files and links, whatever git says: a home folder
/// may be a checkout that ignores them. Throws std::system_error naming a file that is not there.
Tree tree_of(const std::filesystem::path& root, std::vector<std::string> files);

/// Throws std::runtime_error with a hint if the tree has no file.
void require_files(const Tree& tree);

// Patterns of `--exclude`: which files of a tree are left out.

/// Shell patterns (`*`, `?`, `[…]`), matched against names relative to the tree's root. A pattern
/// without a slash matches any component of a name. A pattern with a slash matches from the root,
/// and its `*` stops at slashes; `**` between slashes stands for any folders, also none. With a
/// slash at the end it matches only folders. A folder that matches excludes everything below it.
class Excludes {
 public:
  /// Throws std::invalid_argument on a pattern that can match nothing, such as an empty one.
  explicit Excludes(const std::vector<std::string>& patterns);

  /// Whether the file `name` or a folder above it matches.
  bool match_file(std::string_view name) const;
  /// Whether the folder `name` or one above it matches.
  bool match_folder(std::string_view name) const;

  /// The patterns that have matched nothing so far, as given.
  std::vector<std::string> unused() const;

 private:
  enum class Kind { file, folder };
  struct Pattern {
    std::string given;
    std::string text;
    bool is_rooted = false;
    bool is_folder = false;
    mutable bool is_used = false;
  };

  bool match(std::string_view name, Kind kind) const;

  std::vector<Pattern> patterns_;
};

}  // namespace dtool::tree_sync
