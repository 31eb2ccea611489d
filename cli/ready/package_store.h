// SPDX-License-Identifier: MIT
// Packages that this machine resolved once for `--environment`: folders `~/.dtool/KIND/HASH`, and
// files `KEY.resolved` that name the hash for what was asked.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "ssh/machine/run_to_end.h"
#include "sync/tree.h"

namespace dtool::cli {

struct Packages {
  std::string hash;      ///< SHA-256 of all files' names and contents, and of whom they are for
  tree_sync::Tree tree;  ///< the files, `lock.txt` among them
};

class PackageStore {
 public:
  /// `kind` is the folder's name: `wheels`.
  explicit PackageStore(const std::string& kind);

  const std::filesystem::path& folder() const { return folder_; }

  /// The hash that was found for this key; empty: none, or its packages have gone.
  std::string find(const std::string& key) const;
  void remember(const std::string& key, const std::string& hash) const;

  /// Fills a new folder: `fill` gets it, and one for what it needs meanwhile, and returns the hash.
  /// If it throws, nothing is left.
  std::string add(
      const std::function<std::string(const std::filesystem::path& packages,
                                      const std::filesystem::path& scratch)>& fill) const;

  /// The packages, which count as used now. What was not used for 30 days is deleted.
  Packages take(const std::string& hash) const;

 private:
  std::filesystem::path folder_;
};

/// The name of the file that lists a folder's packages with their SHA-256.
inline constexpr const char* kLockFile = "lock.txt";

/// Relative to the folder; links are not followed.
std::vector<std::string> files_below(const std::filesystem::path& folder);

/// The SHA-256 of a file's content, in hex.
std::string sha256_of(const std::filesystem::path& file);

/// What a program such as pip complained about: its lines that begin with `error`, else its last
/// line.
std::string complaint(const ssh::Written& told);

}  // namespace dtool::cli
