// SPDX-License-Identifier: MIT
// The packages of an environment.yml, resolved by py-rattler.
#include "cli/ready/packages.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/ready/trainer_bundle.h"
#include "cli/scripts.h"
#include "killfiles/whole_file.h"
#include "ssh/host/answers/python_environment.h"
#include "ssh/host/files.h"
#include "ssh/machine/encodings.h"
#include "ssh/machine/interrupts.h"
#include "ssh/machine/run_to_end.h"
#include "ssh/wire/check.h"

namespace dtool::cli {
namespace {

namespace fs = std::filesystem;

/// Its interface changes with its second number.
constexpr const char* kRattler = "--only-binary :all:\npy-rattler==0.28.*\n";
constexpr const char* kYaml = "PyYAML>=6\n";

/// What dtool itself needs of pip's packages. Once chosen it stays, for as long as it is there.
Packages own_packages(Console& console, const PackageStore& store, const std::string& name,
                      const std::string& requirements, const HostPython& python) {
  const PackageStore wheels("wheels");
  ssh::Sha256 whose;
  whose.add(fmt::format("own 1 {} {} {} {}", requirements, python.version, python.processor,
                        python.glibc));
  const std::string key = whose.hex();
  if (const std::string hash = wheels.find(key); !hash.empty()) return wheels.take(hash);
  const fs::path file = store.folder() / name;
  std::error_code missing;
  if (!fs::exists(file, missing) || killfiles::read_whole(file) != requirements) {
    fs::create_directories(store.folder());
    killfiles::write_whole(file, requirements);
  }
  try {
    Packages packages = resolve_python(console, {file, {}, {}}, python);
    wheels.remember(key, packages.hash);
    return packages;
  } catch (const UsageError& error) {
    throw UsageError(fmt::format(
        "py-rattler, which reads an environment.yml, cannot be fetched: {}", error.what()));
  }
}

/// This machine's python3 with py-rattler and a reader of YAML, in an environment as hosts have
/// them.
std::string ready_solver(Console& console, const PackageStore& store) {
  host::PythonReply own = host::look_at_python();
  if (host::minor_of_python(own.version) < kOldestCondaPython)
    throw UsageError(
        "--environment: this machine has no python3 of 3.10 or later, on which "
        "py-rattler reads an environment.yml");
  const Packages packages =
      own_packages(console, store, "solver.txt", fmt::format("{}{}", kRattler, kYaml),
                   {own.version, own.processor, glibc_of(own.libc)});
  const ssh::EndsAtOnce ends_at_once;  // no code listens for signals meanwhile
  const fs::path folder = host::expand_home("~/.dtool/environments/" + packages.hash);
  const auto ask = [&](bool builds) { return host::ready_python({packages.hash, builds}); };
  if (!ask(false).is_built) {
    std::error_code fault;
    fs::create_directories(folder, fault);
    const fs::path draft = folder / ("packages." + ssh::random_hex(8));
    if (!fault) fs::copy(packages.tree.root, draft, fs::copy_options::recursive, fault);
    if (!fault) host::flush_disk_of(draft);
    // Those that another dtool has put there, it may be reading.
    if (!fault) fault = rename_unless_taken(draft, folder / "packages");
    std::error_code ignored;
    fs::remove_all(draft, ignored);
    const host::PythonReply reply = ask(true);
    if (!reply.is_built)
      throw std::runtime_error(
          fmt::format("--environment: py-rattler cannot be installed here: {}",
                      fault ? fault.message() : without_controls(reply.fault)));
  }
  return folder / "venv/bin/python3";
}

/// The folder from which those packages are imported.
fs::path site_packages(const fs::path& packages, const HostPython& python) {
  return packages /
         fmt::format("lib/python3.{}/site-packages", host::minor_of_python(python.version));
}

enum class Channels { remote, local };

/// Fills `folder` with the packages.
Channels fetch(const std::string& python, const fs::path& file, const CondaHosts& hosts,
               const PackageStore& store, const fs::path& folder) {
  const std::string cuda =
      hosts.cuda == 0 ? "" : fmt::format("{}.{}", hosts.cuda / 1000, hosts.cuda % 1000 / 10);
  const auto told = ssh::run_to_end(
      {python, "-I", "-c", std::string(scripts::kSolve_conda), file, hosts.python.processor,
       std::to_string(hosts.python.glibc), hosts.kernel, cuda, store.folder(), folder},
      {"LC_ALL=C.UTF-8"});
  if (!told) throw std::runtime_error(fmt::format("{} has gone", python));
  if (told->exit_code != 0)
    throw UsageError(fmt::format("--environment {}: {}", file.string(), complaint(*told)));
  return told->out == "local\n" ? Channels::local : Channels::remote;
}

/// Writes the lock, and returns the hash of all.
std::string lock(const fs::path& folder, const CondaHosts& hosts) {
  std::string text;
  for (const std::string& name : tree_sync::tree_of(folder, files_below(folder)).files)
    text += fmt::format("{} {}\n", sha256_of(folder / name), name);
  killfiles::write_whole(folder / kLockFile, text);
  ssh::Sha256 hash;
  hash.add(fmt::format("conda {}\n", hosts.python.processor));
  hash.add(text);
  return hash.hex();
}

/// Adds what stands below `pip:`, chosen for conda's Python and beside conda's packages.
Packages add_pip(Console& console, const fs::path& file, const CondaHosts& hosts,
                 const PackageStore& store, Packages conda) {
  const fs::path told = conda.tree.root / "pip.json";
  if (std::error_code missing; !fs::exists(told, missing)) return conda;
  PackageNeeds needs{conda.tree.root / "pip.txt", {}, {}};
  const auto chosen = nlohmann::json::parse(killfiles::read_whole(told));
  chosen.at("held").get_to(needs.held);
  needs.keeps_held = true;
  needs.origin = file;
  const Packages pip = resolve_python(
      console, needs, {chosen.at("python"), hosts.python.processor, hosts.python.glibc});
  ssh::Sha256 both;
  both.add(fmt::format("conda and pip 1 {} {}\n", conda.hash, pip.hash));
  const std::string key = both.hex();
  std::string hash = store.find(key);
  if (hash.empty()) {
    hash = store.add([&](const fs::path& packages, const fs::path&) {
      const ssh::EndsAtOnce ends_at_once;  // no code listens for signals while this step reads
      std::error_code no_links;
      fs::copy(conda.tree.root, packages,
               fs::copy_options::recursive | fs::copy_options::create_hard_links, no_links);
      if (no_links)
        fs::copy(conda.tree.root, packages,
                 fs::copy_options::recursive | fs::copy_options::skip_existing);
      fs::remove(packages / kLockFile);
      fs::copy(pip.tree.root, packages / "pip",
               fs::copy_options::recursive | fs::copy_options::copy_symlinks);
      fs::remove(packages / "pip" / kLockFile);
      return lock(packages, hosts);
    });
    store.remember(key, hash);
  }
  return store.take(hash);
}

std::string key_of(const fs::path& file, const CondaHosts& hosts) {
  ssh::Sha256 key;
  key.add(fmt::format("conda 3 {} {} {} {}\n", hosts.python.processor, hosts.python.glibc,
                      hosts.kernel, hosts.cuda));
  key.add(kRattler);
  key.add(scripts::kSolve_conda);
  key.add(scripts::kInstall_conda);
  key.add(killfiles::read_whole(file));
  return key.hex();
}

/// Packages that no folder has any more, and what channels told of theirs, are kept for 30 days,
/// for the next environment.
void remove_unused(const PackageStore& store) {
  std::error_code gone;  // another dtool was quicker
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(24 * 30);
  for (const auto& each : fs::directory_iterator(store.folder() / "files", gone)) {
    if (each.hard_link_count(gone) == 1 && each.last_write_time(gone) < old)
      fs::remove(each.path(), gone);
  }
  for (const auto& each : fs::recursive_directory_iterator(store.folder() / "repodata", gone)) {
    if (each.is_regular_file(gone) && each.last_write_time(gone) < old)
      fs::remove(each.path(), gone);
  }
}

}  // namespace

bool is_conda_file(const fs::path& file) {
  return file.extension() == ".yml" || file.extension() == ".yaml";
}

Packages resolve_conda(Console& console, const fs::path& file, const CondaHosts& hosts) {
  const PackageStore store("conda");
  const std::string key = key_of(file, hosts);
  std::string hash = store.find(key);
  if (hash.empty()) {
    const std::string python = ready_solver(console, store);
    const Packages installer =
        own_packages(console, store, "installer.txt", kRattler, hosts.python);
    console.progress(fmt::format("py-rattler resolves {} and fetches its packages",
                                 without_controls(file.string())));
    Channels channels = Channels::local;
    hash = store.add([&](const fs::path& packages, const fs::path&) {
      channels = fetch(python, file, hosts, store, packages);
      const ssh::EndsAtOnce ends_at_once;  // no code listens for signals while this step reads
      fs::copy(site_packages(installer.tree.root, hosts.python), packages / "rattler",
               fs::copy_options::recursive);
      killfiles::write_whole(packages / host::kCondaInstaller,
                             std::string(scripts::kInstall_conda));
      return lock(packages, hosts);
    });
    if (channels == Channels::remote) store.remember(key, hash);
    console.progress("");
    remove_unused(store);
  }
  return add_pip(console, file, hosts, store, store.take(hash));
}

}  // namespace dtool::cli
