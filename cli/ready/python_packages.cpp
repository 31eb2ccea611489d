// SPDX-License-Identifier: MIT
#include "cli/ready/python_packages.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/action.h"
#include "cli/ready/conda_packages.h"
#include "cli/scripts.h"
#include "cli/terminal_text.h"
#include "killfiles/nearest.h"
#include "ssh/host/answers/python_environment.h"
#include "ssh/host/versions.h"
#include "ssh/machine/home_folder.h"
#include "ssh/machine/run_to_end.h"
#include "ssh/machine/sha256.h"
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

}  // namespace dtool::cli
