// SPDX-License-Identifier: MIT
#include "cli/ready/program_lacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ssh/remote.h"

namespace dtool::cli {
namespace {

struct PackageManager {
  std::string_view name;
  std::string_view system;  ///< whose packages are named so
  std::string_view install;
};

/// The first is taken where a host names none of them.
constexpr std::array kManagers = {
    PackageManager{"apt-get", "Debian", "apt-get install -y"},
    PackageManager{"dnf", "Red Hat and Fedora", "dnf install -y"},
    PackageManager{"yum", "Red Hat", "yum install -y"},
    PackageManager{"zypper", "SUSE", "zypper --non-interactive install"},
    PackageManager{"apk", "Alpine", "apk add"},
    PackageManager{"pacman", "Arch", "pacman -S --noconfirm"},
};

struct Package {
  std::string_view program;
  std::string_view name;    ///< everywhere, but
  std::string_view debian;  ///< the name on Debian, if not empty
  std::string_view red_hat = "";
};

constexpr std::array kPackages = {
    Package{"awk", "gawk", "mawk"},
    Package{"bash", "bash", ""},
    Package{"ch-run", "charliecloud", "charliecloud-runtime", "charliecloud"},
    Package{"grep", "grep", ""},
    Package{"head", "coreutils", ""},
    Package{"mktemp", "coreutils", ""},
    Package{"module", "environment-modules", ""},
    Package{"podman", "podman", ""},
    Package{"rsync", "rsync", ""},
    Package{"screen", "screen", ""},
    Package{"sed", "sed", ""},
    Package{"tail", "coreutils", ""},
    Package{"timeout", "coreutils", ""},
    Package{"tmux", "tmux", ""},
};

const PackageManager& manager_of(std::string_view name) {
  const auto found = std::ranges::find(kManagers, name, &PackageManager::name);
  return found == kManagers.end() ? kManagers.front() : *found;
}

/// Empty if the program is none of those.
std::string_view package_of(std::string_view program, const PackageManager& manager) {
  const auto found = std::ranges::find(kPackages, program, &Package::program);
  if (found == kPackages.end()) return "";
  if (manager.name == "apt-get" && !found->debian.empty()) return found->debian;
  const bool is_red_hat = manager.name == "dnf" || manager.name == "yum";
  return is_red_hat && !found->red_hat.empty() ? found->red_hat : found->name;
}

}  // namespace

std::string install_hint(std::string_view package_manager,
                         const std::vector<std::string>& programs) {
  const PackageManager& manager = manager_of(package_manager);
  std::vector<std::string_view> packages;
  std::string words;
  for (const std::string& program : programs) {
    const std::string_view package = package_of(program, manager);
    if (package.empty() || std::ranges::find(packages, package) != packages.end()) continue;
    packages.push_back(package);
    words += fmt::format(" {}", package);
  }
  if (words.empty()) return "";
  return fmt::format("on {}: dtool command --command 'sudo {}{}' --runs_on {}", manager.system,
                     manager.install, words, ssh::kHostsInHint);
}

std::vector<Lack> program_lacks(const host::ProgramLacks& found) {
  std::vector<Lack> lacks;
  if (!found.programs.empty()) {
    lacks.push_back({"programs", fmt::format("{} is not there", fmt::join(found.programs, ", ")),
                     install_hint(found.package_manager, found.programs)});
  }
  if (!found.old_bash.empty()) {
    lacks.push_back({"programs",
                     fmt::format("bash {} is too old: dtool needs 4.4 or later", found.old_bash),
                     "the bash that comes first in the log-in's PATH is taken: a newer one may be "
                     "put before it"});
  }
  if (!found.screen_fault.empty()) {
    lacks.push_back(
        {"programs", "screen does not work: " + found.screen_fault, "screen -ls, on the host"});
  }
  if (!found.lock_fault.empty()) {
    lacks.push_back({"home", "files cannot be locked in " + found.lock_fault,
                     "its file system has no flock: Lustre wants the mount option flock, NFS its "
                     "lock service or the mount option local_lock=all"});
  }
  return lacks;
}

}  // namespace dtool::cli
