// SPDX-License-Identifier: MIT
// `--environment`: the packages that a file wants. Those of a requirements.txt or uv.lock are
// chosen on this machine by uv for the hosts' Python, and laid out in `~/.dtool/wheels/HASH` as a
// virtual environment has them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/console.h"
#include "ssh/machine/run_to_end.h"
#include "ssh/remote.h"
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

/// Renames a whole folder, unless something is there already: another dtool was quicker. Returns
/// any other error.
std::error_code rename_unless_taken(const std::filesystem::path& folder,
                                    const std::filesystem::path& name);

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
  std::vector<std::string> held = {};  ///< packages that are there already, as `NAME==VERSION`
  bool keeps_held = false;             ///< refuse packages that want another version of a held one
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

// The conda packages that an environment.yml wants, resolved once on this machine by py-rattler,
// which needs no conda: one file for each package, in `~/.dtool/conda/HASH`.

/// What all hosts have, for which packages are chosen.
struct CondaHosts {
  HostPython python;   ///< the Python that installs the packages; the oldest of the hosts
  std::string kernel;  ///< `5.10`, the oldest
  /// The CUDA version that all drivers can do: 12040 is CUDA 12.4; 0: a host has no driver.
  std::int64_t cuda = 0;
};

/// Python that py-rattler runs on: 3.10 or later.
inline constexpr int kOldestCondaPython = 10;

/// By its name: `*.yml` or `*.yaml`.
bool is_conda_file(const std::filesystem::path& file);

/// Besides the packages there are `lock.txt`, py-rattler's wheel and the script that installs them.
/// A file is resolved once for such hosts, and again when its text has changed; each time if a
/// channel is a folder. Throws UsageError if py-rattler cannot be had or cannot do it, with its
/// words; std::runtime_error, std::system_error if this machine cannot keep the packages.
Packages resolve_conda(Console& console, const std::filesystem::path& file,
                       const CondaHosts& hosts);

// The same packages on all hosts: this machine resolves a file and fetches its packages, sends them
// as code is sent, and each host builds an environment below `~/.dtool/environments/HASH`.

/// Judges the hosts' results after a step, which is named as a failure names it. False: the work
/// ends there.
using JudgeStep =
    std::function<bool(const std::vector<ssh::HostResult>& results, std::string_view doing)>;

/// Gives every host the environment that is wanted, and asks nothing but that where all have it.
/// Returns the environment's folder on hosts, from `~/`; empty: a step went wrong, as `judge` was
/// told. Throws UsageError and the rest that resolve_python and resolve_conda throw.
std::string supply_environment(Console& console, ssh::Remote& remote, PackageNeeds needs,
                               const JudgeStep& judge);

}  // namespace dtool::cli
