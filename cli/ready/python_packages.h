// SPDX-License-Identifier: MIT
// The Python packages that a requirements.txt or uv.lock wants, chosen on this machine by uv for
// the hosts' Python, and laid out in `~/.dtool/wheels/HASH` as a virtual environment has them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "ssh/machine/run_to_end.h"
#include "sync/tree.h"

namespace dtool::cli {

// Packages that this machine resolved once for `--environment`: folders `~/.dtool/KIND/HASH`, and
// files `KEY.resolved` that name the hash for what was asked.

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

/// The Python of hosts, for which packages are chosen.
struct HostPython {
  std::string version;    ///< `3.11.2`
  std::string processor;  ///< `x86_64`
  int glibc = 0;          ///< the oldest of the hosts: 36 is glibc 2.36

  bool operator==(const HostPython&) const = default;
};

/// The hosts' own packages: whether an environment leads to them as well.
enum class OwnPackages { hidden, seen };

/// What `--environment` and the flags beside it want.
struct PackageNeeds {
  std::filesystem::path file;
  std::vector<std::string> extras;  ///< the extras of the project of a uv.lock
  std::vector<std::string> groups;  ///< the dependency groups of the project of a uv.lock
  OwnPackages own_packages = OwnPackages::hidden;
  std::vector<std::string> held = {};  ///< `NAME==VERSION`, which are there already
  bool keeps_held = false;             ///< nothing else may want another version of those
  /// The file that messages name, and where names in `file` begin.
  std::filesystem::path origin = {};
};

/// Throws UsageError if the file is none of those kinds, or is not there, or has no extras.
void check_requirements(const PackageNeeds& needs);

/// `lib/python3.11/site-packages`, `bin` and the like, and `lock.txt` with names and versions.
/// The file is resolved each time; packages that are the same as before are not installed again.
/// What was chosen for it stays while the file and the index allow it. Throws UsageError if uv or
/// pip cannot do it, with its words; std::runtime_error, std::system_error if this machine cannot
/// keep the packages.
Packages resolve_python(Console& console, const PackageNeeds& needs, const HostPython& python);

}  // namespace dtool::cli
