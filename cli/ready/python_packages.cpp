// SPDX-License-Identifier: MIT
// The packages of a requirements.txt or uv.lock, chosen by uv, and the folders that keep packages.
#include "cli/ready/packages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/scripts.h"
#include "killfiles/nearest.h"
#include "killfiles/whole_file.h"
#include "ssh/host/answers/python_environment.h"
#include "ssh/host/explaining_line.h"
#include "ssh/host/files.h"
#include "ssh/host/versions.h"
#include "ssh/machine/encodings.h"
#include "ssh/machine/files.h"
#include "ssh/machine/run_to_end.h"
#include "ssh/wire/words.h"

namespace dtool::cli {

namespace {

namespace fs = std::filesystem;

bool is_uv_lock(const fs::path& file) {
  return file.filename() == "uv.lock";
}

std::string shown_name(const PackageNeeds& needs) {
  return without_controls((needs.origin.empty() ? needs.file : needs.origin).string());
}

/// The name under which is kept what was chosen for a file.
std::string name_of(const PackageNeeds& needs, const HostPython& python) {
  ssh::Sha256 name;
  name.add(fmt::format("{} {} {}", fs::absolute(needs.file).native(),
                       host::minor_of_python(python.version), python.processor));
  return name.hex();
}

nlohmann::json request_of(const PackageNeeds& needs, const HostPython& python,
                          const PackageStore& store) {
  return {{"file", needs.file.native()},
          {"extras", needs.extras},
          {"groups", needs.groups},
          {"held", needs.held},
          {"keeps_held", needs.keeps_held},
          {"folder", needs.origin.empty() ? "" : fs::absolute(needs.origin).parent_path().native()},
          {"sees_system", needs.own_packages == OwnPackages::seen},
          {"version", python.version},
          {"processor", python.processor},
          {"glibc", python.glibc},
          {"home", (ssh::home_folder() / ".dtool").native()},
          {"store", store.folder().native()},
          {"kept", (store.folder() / (name_of(needs, python) + ".chosen")).native()}};
}

/// What read_requirements.py and python_packages.py print.
std::string run_script(const PackageNeeds& needs, const nlohmann::json& request) {
  const auto told =
      ssh::run_to_end({"python3", "-I", "-c",
                       std::string(scripts::kRead_requirements).append(scripts::kPython_packages),
                       request.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)},
                      {"LC_ALL=C.UTF-8"});
  if (!told)
    throw UsageError("--environment: this machine has no python3, which resolves it",
                     "apt-get install python3 python3-venv");
  if (told->exit_code == 0) return told->out;
  std::string hint;
  for (std::string_view rest = told->err; !rest.empty();) {
    const std::string_view line = host::cut_line(rest);
    if (line.starts_with("hint: ")) hint = without_controls(std::string(line.substr(6)));
  }
  throw UsageError(fmt::format("--environment {}: {}", shown_name(needs), complaint(*told)), hint);
}

}  // namespace

void check_requirements(const PackageNeeds& needs) {
  const std::string extension = needs.file.extension();
  const std::string name = without_controls(needs.file.string());
  if (extension != ".txt" && !is_uv_lock(needs.file) && !is_conda_file(needs.file))
    throw UsageError(fmt::format(
        "--environment {}: neither a requirements.txt, a uv.lock nor an environment.yml", name));
  std::error_code unseen;
  if (!fs::is_regular_file(needs.file, unseen))
    throw UsageError(fmt::format("--environment {}: there is no such file", name),
                     without_controls(killfiles::nearest_file(needs.file)));
  if (!is_uv_lock(needs.file) && !(needs.extras.empty() && needs.groups.empty()))
    throw UsageError(fmt::format("--extra and --group are about a uv.lock, not about {}", name));
  if (is_conda_file(needs.file) && needs.own_packages == OwnPackages::seen)
    throw UsageError(
        fmt::format("--system_site_packages is about Python's packages: {} brings a "
                    "Python of its own",
                    name));
}

Packages resolve_python(Console& console, const PackageNeeds& needs, const HostPython& python) {
  const PackageStore store("wheels");
  console.progress(fmt::format("uv resolves {} and fetches its packages", shown_name(needs)));
  std::string key;
  const std::string hash = store.add([&](const fs::path& packages, const fs::path& scratch) {
    nlohmann::json request = request_of(needs, python, store);
    request["packages"] = packages.native();
    request["scratch"] = scratch.native();
    const std::string told = run_script(needs, request);
    std::string_view rest = told;
    std::string made(host::cut_word(rest));
    if (!host::is_hash(made)) throw std::runtime_error("python_packages.py told no hash");
    key = host::as_line(std::string(rest));
    return made;
  });
  if (!key.empty()) store.remember(key, hash);
  console.progress("");
  return store.take(hash);
}

namespace {

namespace fs = std::filesystem;

constexpr const char* kUnfinished = ".draft.";

fs::path index_of(const fs::path& folder, const std::string& key) {
  return folder / (key + ".resolved");
}

/// Packages that were not used for 30 days, and what an interrupted dtool left.
void remove_old(const fs::path& used) {
  std::error_code gone;  // another dtool was quicker
  for (const std::string& old : host::mark_used(used)) fs::remove_all(old, gone);
  const auto now = fs::file_time_type::clock::now();
  for (const auto& each : fs::directory_iterator(used.parent_path(), gone)) {
    const bool is_draft = each.path().filename().string().starts_with(kUnfinished);
    if (is_draft && each.last_write_time(gone) < now - std::chrono::hours(24))
      fs::remove_all(each.path(), gone);
  }
}

}  // namespace

PackageStore::PackageStore(const std::string& kind)
    : folder_(ssh::home_folder() / ".dtool" / kind) {}

std::string PackageStore::find(const std::string& key) const {
  std::error_code missing;
  if (!fs::exists(index_of(folder_, key), missing)) return {};
  const std::string hash = host::as_line(killfiles::read_whole(index_of(folder_, key)));
  return host::is_hash(hash) && fs::exists(folder_ / hash / kLockFile, missing) ? hash : "";
}

void PackageStore::remember(const std::string& key, const std::string& hash) const {
  killfiles::write_whole(index_of(folder_, key), hash + "\n");
}

std::string PackageStore::add(
    const std::function<std::string(const fs::path& packages, const fs::path& scratch)>& fill)
    const {
  const fs::path draft = folder_ / (kUnfinished + ssh::random_hex(8));
  try {
    fs::create_directories(draft / "packages");
    fs::permissions(folder_, fs::perms::owner_all);
    const std::string hash = fill(draft / "packages", draft);
    host::flush_disk_of(draft);
    // The same packages as for another file, or another dtool was quicker.
    if (const auto fault = rename_unless_taken(draft / "packages", folder_ / hash))
      throw fs::filesystem_error("cannot keep packages", folder_ / hash, fault);
    fs::remove_all(draft);
    return hash;
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(draft, ignored);
    throw;
  }
}

Packages PackageStore::take(const std::string& hash) const {
  const fs::path folder = folder_ / hash;
  remove_old(folder);
  return {hash, tree_sync::tree_of(folder, files_below(folder))};
}

std::error_code rename_unless_taken(const fs::path& folder, const fs::path& name) {
  std::error_code fault;
  fs::rename(folder, name, fault);
  const bool is_taken = fault == std::errc::file_exists || fault == std::errc::directory_not_empty;
  return is_taken ? std::error_code() : fault;
}

std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& each : fs::recursive_directory_iterator(folder)) {
    if (each.is_symlink() || !each.is_directory())
      files.push_back(each.path().lexically_relative(folder));
  }
  return files;
}

std::string sha256_of(const fs::path& file) {
  ssh::Sha256 hash;
  ssh::read_pieces(file, [&hash](std::string_view piece) { hash.add(piece); });
  return hash.hex();
}

std::string complaint(const ssh::Written& told) {
  std::vector<std::string> errors;
  std::string last = fmt::format("exit code {}", told.exit_code);
  for (std::string_view rest = told.err; !rest.empty();) {
    const std::string line = without_controls(std::string(host::cut_line(rest)));
    if (line.empty()) continue;
    last = line;
    if (line.starts_with("ERROR: ") && line != "ERROR: Exception:")
      errors.push_back(line.substr(7));
    if (line.starts_with("error: ")) errors.push_back(line.substr(7));
  }
  constexpr std::size_t kMost = 3;
  if (errors.size() > kMost) errors.resize(kMost);
  if (const std::string line = host::explaining_line(told.err); errors.empty() && !line.empty())
    return without_controls(line);
  return errors.empty() ? last : fmt::format("{}", fmt::join(errors, "; "));
}

}  // namespace dtool::cli
