// SPDX-License-Identifier: MIT
// What hosts lack of an environment and of programs, from their answers.
#include "cli/ready/check_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string>

#include "killfiles/nearest.h"
#include "ssh/quote.h"
#include "ssh/remote.h"
#include "ssh/script.h"

namespace dtool::cli {

namespace {

using ssh::Answers;

/// The modules of that name in other versions, else the one nearest to it.
std::string hint_at_module(const std::string& name, const std::string& known) {
  constexpr std::size_t kMost = 8;
  std::istringstream stream(known);
  std::vector<std::string> all;
  std::vector<std::string> versions;
  const std::string base = name.substr(0, name.find('/'));
  for (std::string each; stream >> each; all.push_back(each)) {
    if (each == name) return "";  // it is there, and fails
    if (each == base || each.starts_with(base + "/")) versions.push_back(each);
  }
  if (versions.size() > kMost) versions.resize(kMost);
  if (!versions.empty()) return fmt::format("there is {}", fmt::join(versions, ", "));
  if (const auto near = killfiles::nearest(name, all))
    return fmt::format("did you mean {}?", *near);
  return "module avail, on the host, lists what there is";
}

void add_module_lacks(const Answers& answers, std::string_view package_manager,
                      std::vector<Lack>& lacks) {
  if (answers.contains("bad_no_module")) {
    lacks.push_back({"modules", "--modules: the command module is not there",
                     install_hint(package_manager, {"module"})});
  }
  const auto fault = ssh::find_answer(answers, "bad_modules");
  if (!fault) return;
  const auto name = ssh::find_answer(answers, "missing_module");
  const std::string known = ssh::find_answer(answers, "known_modules").value_or("");
  lacks.push_back(
      {"modules", "--modules: " + *fault, name ? hint_at_module(*name, known) : std::string()});
}

constexpr const char* kHintAtEnvironment =
    "a virtual environment serves the machine and the folder in which it was made; --environment "
    "requirements.txt makes one on each host";
constexpr const char* kHintAtCode = "it is in the current folder, which dtool run sends";

std::string hint_at_activation(const Needs& needs) {
  if (needs.environment_comes_later) return kHintAtCode;
  const std::string& path = needs.environment.activate;
  if (!path.empty() && !ssh::is_anchored(path))
    return fmt::format("{} begins at the code folder there; ~/{} would begin at the home folder",
                       path, path);
  return "a script that makes it runs on each host with dtool config --config_script FILE";
}

std::string hint_at_image(const std::string& image, const Needs& needs) {
  const auto& container = needs.environment.container;
  if (needs.environment_comes_later && container && !ssh::is_anchored(container->image))
    return kHintAtCode;
  if (image.starts_with('/'))
    return "a path is looked for on each host; one that is relative, in the code folder";
  return fmt::format("dtool command --command 'podman pull {}' --runs_on {}", image,
                     ssh::kHostsInHint);
}

void add_activation_lacks(const Answers& answers, const Needs& needs, std::vector<Lack>& lacks) {
  if (const auto fault = ssh::find_answer(answers, "bad_no_file"))
    lacks.push_back({"activate", "--env_activate_path: " + *fault, hint_at_activation(needs)});
  if (const auto fault = ssh::find_answer(answers, "bad_environment"))
    lacks.push_back({"activate", "--env_activate_path: " + *fault, kHintAtEnvironment});
  if (const auto fault = ssh::find_answer(answers, "bad_activate"))
    lacks.push_back({"activate", "--env_activate_path: " + *fault, ""});
}

std::string hint_at_engine(std::string_view package_manager, const std::string& program) {
  if (program == "apptainer")
    return "Debian has no package of it: apptainer.org has one; --container_engine names another "
           "engine";
  return install_hint(package_manager, {program});
}

void add_container_lacks(const Answers& answers, std::string_view package_manager,
                         const Needs& needs, std::vector<Lack>& lacks) {
  if (const auto program = ssh::find_answer(answers, "bad_no_engine")) {
    lacks.push_back({"container", fmt::format("--container: {} is not there", *program),
                     hint_at_engine(package_manager, *program)});
  }
  if (const auto image = ssh::find_answer(answers, "bad_no_image")) {
    lacks.push_back({"container", fmt::format("--container: there is no image {}", *image),
                     hint_at_image(*image, needs)});
  }
  if (const auto fault = ssh::find_answer(answers, "bad_container"))
    lacks.push_back({"container", "--container: " + *fault, ""});
  const auto [begin, end] = answers.equal_range("no_bind");
  for (auto each = begin; each != end; ++each)
    lacks.push_back({"container", fmt::format("--bind: there is no {}", each->second), ""});
}

}  // namespace

std::string unseen_container(const Answers& answers) {
  if (const auto program = ssh::find_answer(answers, "unseen_no_engine"))
    return *program + " is not there";
  if (const auto image = ssh::find_answer(answers, "unseen_no_image"))
    return "there is no image " + *image;
  return ssh::find_answer(answers, "unseen_container").value_or("");
}

std::vector<std::string> left_out_variables(const Answers& answers) {
  std::vector<std::string> variables;
  const auto [begin, end] = answers.equal_range("left_out");
  for (auto each = begin; each != end; ++each) variables.push_back(each->second);
  return variables;
}

std::vector<Lack> environment_lacks(const Answers& answers, std::string_view package_manager,
                                    const Needs& needs) {
  std::vector<Lack> lacks;
  add_module_lacks(answers, package_manager, lacks);
  add_activation_lacks(answers, needs, lacks);
  add_container_lacks(answers, package_manager, needs, lacks);
  return lacks;
}

namespace {

struct PackageManager {
  std::string_view name;
  std::string_view system;  ///< the system whose packages are named so
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
  std::string_view name;    ///< the name where the next two say nothing
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
