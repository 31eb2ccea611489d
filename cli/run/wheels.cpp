// SPDX-License-Identifier: MIT
#include "cli/run/wheels.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <regex>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/action.h"
#include "cli/run/conda_packages.h"
#include "cli/run/host/python_environment.h"
#include "cli/run/trainer_bundle.h"
#include "cli/terminal_text.h"
#include "killfiles/whole_file.h"
#include "ssh/host/words.h"
#include "ssh/machine/file_stamp.h"
#include "ssh/machine/interrupts.h"
#include "ssh/machine/run_to_end.h"
#include "ssh/machine/sha256.h"

namespace dtool::cli {
namespace {

namespace fs = std::filesystem;

bool is_uv_lock(const fs::path& file) {
  return file.filename() == "uv.lock";
}

/// What decides which packages are chosen, but for the index of packages.
class Requirements {
 public:
  /// `file` begins them. What it names is named from its folder, too.
  Requirements(const fs::path& file, const HostPython& python) {
    // With the format of this key.
    key_.add(fmt::format("2 {} {} {} {}\n", fs::absolute(file).parent_path().string(),
                         python.version, python.processor, python.glibc));
    add(file);
  }

  /// Nothing: they name source code of this machine, which may change at any time.
  std::optional<std::string> key() {
    return has_sources_ ? std::nullopt : std::optional(key_.hex());
  }

 private:
  /// Adds a file and those that it includes. Throws std::system_error on one that is not there.
  void add(const fs::path& file) {
    if (!seen_.insert(fs::weakly_canonical(file)).second) return;
    const std::string text = killfiles::read_whole(file);
    key_.add(fmt::format("{} {}\n", file.string(), text.size()));
    key_.add(text);
    for (std::string_view rest = text; !rest.empty();) add_line(host::cut_line(rest), file);
  }

  void add_line(std::string_view line, const fs::path& file) {
    line = line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
    for (const std::string_view option : {"--find-links", "-f"}) {
      const std::string name = value_of(line, option);
      if (name.empty()) continue;
      add_folder(name);
      add_folder(file.parent_path() / name);
      return;
    }
    for (const std::string_view option : {"--requirement", "--constraint", "-r", "-c"}) {
      const std::string name = value_of(line, option);
      std::error_code unseen;
      if (name.empty()) continue;
      if (fs::exists(file.parent_path() / name, unseen)) add(file.parent_path() / name);
      return;
    }
    has_sources_ = has_sources_ || names_source(line);
  }

  /// The word behind that option, if the line begins with it; or empty.
  static std::string value_of(std::string_view line, std::string_view option) {
    if (!line.starts_with(option)) return {};
    line.remove_prefix(option.size());
    line.remove_prefix(std::min(line.find_first_not_of(" ="), line.size()));
    return std::string(line.substr(0, line.find_first_of(" \t\r")));
  }

  /// Whether what the line names may change while the line stays: a folder or file here, what an
  /// address leads to, or a variable's value.
  static bool names_source(std::string_view line) {
    if (line.starts_with("-e") || line.starts_with("--editable")) return true;
    if (line.find("${") != line.npos || line.find("file:") != line.npos) return true;
    if (line.starts_with('-') || line.starts_with('#')) return false;
    if (line.find("://") != line.npos || line.starts_with('.')) return true;
    const std::string word(line.substr(0, line.find_first_of(" \t\r[;#")));
    std::error_code unseen;
    return word.find('/') != word.npos || fs::is_regular_file(word, unseen);
  }

  /// The wheels in it may be replaced by others.
  void add_folder(const fs::path& folder) {
    std::error_code missing;
    std::set<fs::path> files;
    for (const auto& each : fs::directory_iterator(folder, missing)) files.insert(each.path());
    for (const fs::path& each : files)
      key_.add(fmt::format("{} {}\n", each.string(), ssh::stamp_of(ssh::status_of(each))));
  }

  ssh::Sha256 key_;
  std::set<fs::path> seen_;
  bool has_sources_ = false;
};

/// pip's wheel that came with this machine's Python, or nothing. Debian keeps it elsewhere.
fs::path bundled_pip() {
  const auto told =
      ssh::run_to_end({"python3", "-I", "-c",
                       "import ensurepip, os, sysconfig\n"
                       "print(sysconfig.get_config_var('WHEEL_PKG_DIR') or "
                       "os.path.join(os.path.dirname(ensurepip.__file__), '_bundled'))"});
  std::string folder = "/usr/share/python-wheels";
  if (told && told->exit_code == 0) folder = host::as_line(told->out);
  fs::path newest;
  std::error_code missing;
  for (const char* each : {folder.c_str(), "/usr/share/python-wheels"}) {
    for (const auto& entry : fs::directory_iterator(each, missing)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("pip-") && name.ends_with(".whl"))
        newest = std::max(newest, entry.path());
    }
  }
  return newest;
}

/// The words that run pip here.
std::vector<std::string> find_pip(const fs::path& bundled) {
  // -I: the current folder may hold a pip of its own, or anything else of that name.
  const auto told = ssh::run_to_end({"python3", "-I", "-m", "pip", "--version"});
  if (!told)
    throw UsageError("--environment: this machine has no python3, which resolves it",
                     "apt-get install python3 python3-venv");
  if (told->exit_code == 0) return {"python3", "-I", "-m", "pip"};
  if (bundled.empty())
    throw UsageError("--environment: this machine's python3 has no pip, which resolves it",
                     "apt-get install python3-pip");
  return {"python3", (bundled / "pip").string()};
}

ssh::Written run_pip(std::vector<std::string> words, const std::vector<std::string>& arguments) {
  words.insert(words.end(), {"--no-input", "--disable-pip-version-check"});
  words.insert(words.end(), arguments.begin(), arguments.end());
  // The same source makes the same wheel: the zip format's first day.
  return ssh::run_to_end(words, {"LC_ALL=C.UTF-8", "SOURCE_DATE_EPOCH=315532800"}).value();
}

/// Whether what pip builds or chooses for this machine fits the hosts.
bool is_like_this_machine(const HostPython& python) {
  const host::PythonReply own = host::look_at_python();
  return own.version == python.version && own.processor == python.processor &&
         glibc_of(own.libc) <= python.glibc && glibc_of(own.libc) > 0;
}

/// Arguments of `pip download` that choose wheels for another machine.
std::vector<std::string> for_other_machine(const HostPython& python) {
  std::string abi = "cp" + python.version;
  std::erase(abi, '.');
  std::vector<std::string> words = {"--only-binary=:all:",
                                    "--implementation",
                                    "cp",
                                    "--python-version",
                                    python.version,
                                    "--abi",
                                    abi,
                                    "--abi",
                                    "abi3",
                                    "--abi",
                                    "none"};
  constexpr int kOldest = 17;  // manylinux2014
  constexpr int kNewest = 99;  // no host's word makes the list long
  for (int glibc = std::min(python.glibc, kNewest); glibc >= kOldest; --glibc)
    words.insert(words.end(),
                 {"--platform", fmt::format("manylinux_2_{}_{}", glibc, python.processor)});
  for (const char* kind : {"manylinux2014", "linux"})
    words.insert(words.end(), {"--platform", fmt::format("{}_{}", kind, python.processor)});
  return words;
}

/// The requirements of a uv.lock, with their hashes.
fs::path export_lock(const fs::path& file, const fs::path& folder) {
  const fs::path exported = folder / "requirements.txt";
  const fs::path project = fs::absolute(file).parent_path();
  const auto told = ssh::run_to_end({"uv", "export", "--quiet", "--frozen", "--no-dev",
                                     "--no-emit-project", "--format", "requirements-txt",
                                     "--project", project, "--output-file", exported});
  if (!told)
    throw UsageError(
        fmt::format("--environment {}: this machine has no uv, which reads it", file.string()),
        "install uv, or give a requirements.txt");
  if (told->exit_code == 0) return exported;
  throw UsageError(fmt::format("--environment {}: uv says: {}", file.string(), complaint(*told)));
}

/// Fills `folder` with the wheels.
void fetch(const fs::path& file, const HostPython& python, const fs::path& scratch,
           const fs::path& folder) {
  const fs::path bundled = bundled_pip();
  const std::vector<std::string> pip = find_pip(bundled);
  const fs::path requirements = is_uv_lock(file) ? export_lock(file, scratch) : file;
  std::vector<std::string> words;
  if (is_like_this_machine(python)) {
    words = {"wheel", "--quiet", "-w", folder, "-r", requirements};
  } else {
    words = {"download", "--quiet", "-d", folder, "-r", requirements};
    for (std::string& each : for_other_machine(python)) words.push_back(std::move(each));
  }
  const ssh::Written told = run_pip(pip, words);
  if (told.exit_code != 0)
    throw UsageError(
        fmt::format("--environment {}: pip says: {}", file.string(), complaint(told)),
        fmt::format("python3 -m pip {} -r {} shows all of it", words.front(), file.string()));
  if (!bundled.empty()) {
    fs::copy_file(bundled, folder / bundled.filename(), fs::copy_options::skip_existing);
    return;
  }
  const ssh::Written own = run_pip(pip, {"download", "--quiet", "--no-deps", "-d", folder, "pip"});
  if (own.exit_code != 0)
    throw UsageError(fmt::format("--environment: pip cannot fetch itself: {}", complaint(own)),
                     "apt-get install python3-venv brings its wheel");
}

/// Writes the lock, and returns the hash of all.
std::string lock(const fs::path& folder, const HostPython& python) {
  std::set<std::string> names;
  for (const auto& each : fs::directory_iterator(folder)) names.insert(each.path().filename());
  std::string text;
  for (const std::string& name : names) text += lock_line(name, sha256_of(folder / name));
  killfiles::write_whole(folder / kLockFile, text);
  ssh::Sha256 hash;
  hash.add(fmt::format("{} {}\n", python.version, python.processor));
  hash.add(text);
  return hash.hex();
}

}  // namespace

std::string lock_line(const std::string& wheel, const std::string& hash) {
  static const std::regex form(
      R"(([A-Za-z0-9._]+)-([A-Za-z0-9._+!]+)(?:-[0-9][A-Za-z0-9._]*)?-[A-Za-z0-9._]+-[A-Za-z0-9._]+-[A-Za-z0-9._]+\.whl)");
  std::smatch found;
  if (!std::regex_match(wheel, found, form))
    throw std::runtime_error(fmt::format("{} is no wheel", wheel));
  return fmt::format("{}=={} --hash=sha256:{}\n", found[1].str(), found[2].str(), hash);
}

void check_requirements(const fs::path& file) {
  const std::string extension = file.extension();
  if (extension != ".txt" && !is_uv_lock(file) && !is_conda_file(file))
    throw UsageError(fmt::format(
        "--environment {}: neither a requirements.txt, a uv.lock nor an environment.yml",
        file.string()));
  std::error_code unseen;
  if (!fs::is_regular_file(file, unseen))
    throw UsageError(fmt::format("--environment {}: there is no such file", file.string()));
}

Packages resolve_wheels(Console& console, const fs::path& file, const HostPython& python) {
  Requirements requirements(file, python);
  const auto key = requirements.key();
  const PackageStore store("wheels");
  std::string hash = store.find(key);
  if (hash.empty()) {
    console.progress(
        fmt::format("pip resolves {} and fetches its packages", without_controls(file.string())));
    hash = store.add([&](const fs::path& wheels, const fs::path& scratch) {
      fetch(file, python, scratch, wheels);
      const ssh::EndsAtOnce ends_at_once;  // nobody listens while this reads
      return lock(wheels, python);
    });
    if (key) store.remember(*key, hash);
    console.progress("");
  }
  return store.take(hash);
}

}  // namespace dtool::cli
