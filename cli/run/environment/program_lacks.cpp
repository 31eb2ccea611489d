#include "cli/run/environment/program_lacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "ssh/remote.h"

namespace dtool::cli {
namespace {

using ssh::Answers;

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
  std::string_view debian;  ///< on Debian, where this is not empty
  std::string_view red_hat = "";
};

constexpr std::array kPackages = {
    Package{"awk", "gawk", "mawk"},
    Package{"bash", "bash", ""},
    Package{"ch-run", "charliecloud", "charliecloud-runtime", "charliecloud"},
    Package{"cmp", "diffutils", ""},
    Package{"comm", "coreutils", ""},
    Package{"find", "findutils", ""},
    Package{"flock", "util-linux", ""},
    Package{"grep", "grep", ""},
    Package{"head", "coreutils", ""},
    Package{"ip", "iproute2", "", "iproute"},
    Package{"mktemp", "coreutils", ""},
    Package{"module", "environment-modules", ""},
    Package{"podman", "podman", ""},
    Package{"readlink", "coreutils", ""},
    Package{"rsync", "rsync", ""},
    Package{"screen", "screen", ""},
    Package{"sed", "sed", ""},
    Package{"setsid", "util-linux", ""},
    Package{"sha256sum", "coreutils", ""},
    Package{"sort", "coreutils", ""},
    Package{"stat", "coreutils", ""},
    Package{"tail", "coreutils", ""},
    Package{"timeout", "coreutils", ""},
    Package{"tmux", "tmux", ""},
    Package{"tr", "coreutils", ""},
    Package{"xargs", "findutils", ""},
};

const PackageManager& manager_of(const Answers& answers) {
  const std::string name = ssh::find_answer(answers, "package_manager").value_or("");
  const auto found = std::ranges::find(kManagers, name, &PackageManager::name);
  return found == kManagers.end() ? kManagers.front() : *found;
}

/// Empty where the program is none of those.
std::string_view package_of(std::string_view program, const PackageManager& manager) {
  const auto found = std::ranges::find(kPackages, program, &Package::program);
  if (found == kPackages.end()) return "";
  if (manager.name == "apt-get" && !found->debian.empty()) return found->debian;
  const bool is_red_hat = manager.name == "dnf" || manager.name == "yum";
  return is_red_hat && !found->red_hat.empty() ? found->red_hat : found->name;
}

}  // namespace

std::string install_hint(const Answers& answers, const std::vector<std::string>& programs) {
  const PackageManager& manager = manager_of(answers);
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

std::vector<Lack> program_lacks(const Answers& answers) {
  std::vector<Lack> lacks;
  const std::vector<std::string> missing = ssh::every_answer(answers, "lack");
  if (!missing.empty()) {
    lacks.push_back({"programs", fmt::format("{} is not there", fmt::join(missing, ", ")),
                     install_hint(answers, missing)});
  }
  std::vector<std::string> unfit;
  std::string said;
  for (const std::string& each : ssh::every_answer(answers, "unfit")) {
    const std::size_t blank = std::min(each.find(' '), each.size());
    unfit.push_back(each.substr(0, blank));
    said += fmt::format("{}{} does not know{}", said.empty() ? "" : ", ", unfit.back(),
                        each.substr(blank));
  }
  if (!unfit.empty()) {
    const std::string hint = install_hint(answers, unfit);
    lacks.push_back(
        {"programs", said, hint.empty() ? hint : "busybox has less than GNU's programs; " + hint});
  }
  if (const auto fault = ssh::find_answer(answers, "bad_screen"))
    lacks.push_back({"programs", "screen does not work: " + *fault, "screen -ls, on the host"});
  if (const auto fault = ssh::find_answer(answers, "no_locks")) {
    lacks.push_back({"home", "files cannot be locked in " + *fault,
                     "its file system has no flock: Lustre wants the mount option flock, NFS its "
                     "lock service or the mount option local_lock=all"});
  }
  return lacks;
}

}  // namespace dtool::cli
