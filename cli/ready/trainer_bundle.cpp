// SPDX-License-Identifier: MIT
#include "cli/ready/trainer_bundle.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "cli/ready/packages.h"
#include "killfiles/whole_file.h"
#include "ssh/host/answers/survey.h"
#include "ssh/host/answers/trainers.h"
#include "ssh/host/files.h"
#include "ssh/machine/encodings.h"
#include "ssh/machine/files.h"
#include "ssh/machine/interrupts.h"
#include "ssh/machine/run_to_end.h"
#include "ssh/wire/words.h"

namespace dtool::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDraft = ".draft.";
constexpr std::string_view kStarter = "dtool-trainer";
// The programs look for each other beside themselves, so they are both in lib/.
constexpr std::string_view kStarterText =
    "#!/bin/sh\n"
    "# Starts the trainer with the libraries that came along, and those of the PyTorch that it "
    "uses.\n"
    "here=${0%/*}\n"
    "libraries=$here/lib\n"
    "if [ -n \"$DTOOL_PYTORCH\" ]; then\n"
    "  libraries=$libraries:$DTOOL_PYTORCH/lib\n"
    "  for each in \"${DTOOL_PYTORCH%/*}\"/nvidia/*/lib; do libraries=$libraries:$each; done\n"
    "fi\n"
    "export LD_LIBRARY_PATH=\"$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"\n"
    "exec \"$here/lib/dtool-trainer\" \"$@\"\n";

fs::path trainers_folder() {
  return ssh::home_folder() / ".dtool/trainers";
}

/// What read_trainer_bundle found last.
fs::path stored_file() {
  return trainers_folder() / "read.json";
}

/// Changes with what the loader finds: libraries are installed or removed, or a module is loaded.
std::string stamp_of_loader() {
  const char* path = std::getenv("LD_LIBRARY_PATH");
  return ssh::stamp_of(ssh::status_of("/etc/ld.so.cache")) + (path == nullptr ? "" : path);
}

std::string stamp_of_file(const fs::path& file) {
  return ssh::stamp_of(ssh::status_of(file));
}

/// Libraries that must be the host's own: libc's, which fit their kernel and their loader only, and
/// the GPU driver's.
bool is_the_hosts(std::string_view library) {
  static constexpr std::array kBegins = {"ld-linux",   "libc.so",       "libm.so",  "libmvec.so",
                                         "libdl.so",   "libpthread.so", "librt.so", "libresolv.so",
                                         "libutil.so", "libanl.so",     "libnss_",  "libcuda.so",
                                         "libnvidia-", "linux-vdso"};
  return std::ranges::any_of(kBegins,
                             [&](const char* begin) { return library.starts_with(begin); });
}

/// Adds the libraries of a program, as the loader finds them: `\tNAME => PATH (0x…)`.
void add_libraries(const fs::path& program, std::map<std::string, fs::path>& found) {
  // A wheel has scripts in their place, which tell the programs, too (packages/start_trainer.py).
  const bool is_script = std::ifstream(program).get() == '#';
  const auto told = is_script ? ssh::run_to_end({program, "--libraries"})
                              : ssh::run_to_end({program}, {"LD_TRACE_LOADED_OBJECTS=1"});
  if (!told || told->exit_code != 0)
    throw std::runtime_error(fmt::format("the loader says of {}: {}", program.string(),
                                         told ? told->err : "it is no program"));
  for (std::string_view rest = told->out; !rest.empty();) {
    std::string_view line = host::cut_line(rest);
    const std::string_view name = host::cut_word(line);
    const std::string_view arrow = host::cut_word(line);
    const std::string_view path = host::cut_word(line);
    if (arrow != "=>" || is_the_hosts(name)) continue;
    if (!path.starts_with('/'))
      throw std::runtime_error(fmt::format("{} lacks {} here", program.string(), name));
    found.emplace(fs::path(name).filename().string(), path);
  }
}

/// Finds the names of glibc's versions among the strings of a program's file.
class GlibcSearch {
 public:
  void add(std::string_view bytes) {
    text_.append(bytes);
    constexpr std::string_view kName = "GLIBC_2.";
    std::size_t at = 0;
    while ((at = text_.find(kName, at)) != text_.npos && at + kLongest <= text_.size()) {
      at += kName.size();
      int minor = 0;
      std::from_chars(text_.data() + at, text_.data() + text_.size(), minor);
      // Only a whole string of the file's table of names counts.
      if (at > kName.size() && text_[at - kName.size() - 1] == '\0') most_ = std::max(most_, minor);
    }
    text_.erase(0, text_.size() - std::min(text_.size(), kLongest));
  }
  int most() const { return most_; }

 private:
  static constexpr std::size_t kLongest = 24;

  std::string text_;
  int most_ = 0;
};

/// Copies the parts. Throws std::runtime_error if one has changed since it was read.
void copy_parts(const TrainerBundle& bundle, const fs::path& folder) {
  fs::create_directories(folder / "lib");
  fs::permissions(folder, fs::perms::owner_all);
  for (const auto& part : bundle.parts) {
    fs::copy_file(part.source, folder / part.name);
    fs::permissions(folder / part.name, fs::perms::owner_all);
    if (stamp_of_file(part.source) != part.stamp)
      throw std::runtime_error(
          fmt::format("{} has changed while it was copied: try again", part.source.string()));
  }
  killfiles::write_whole(folder / kStarter, kStarterText);
  fs::permissions(folder / kStarter, fs::perms::owner_all);
}

/// Whether all parts are there, with their sizes.
bool is_whole(const TrainerBundle& bundle, const fs::path& folder) {
  std::error_code missing;
  std::uint64_t bytes = 0;
  for (const auto& part : bundle.parts) {
    bytes += fs::file_size(folder / part.name, missing);
    if (missing) return false;
  }
  return bytes == bundle.bytes && fs::file_size(folder / kStarter, missing) == kStarterText.size();
}

/// Folders of copies that were interrupted.
void remove_old_drafts() {
  for (const auto& each : fs::directory_iterator(trainers_folder())) {
    std::error_code gone;  // another dtool was quicker
    const bool is_draft = each.path().filename().string().starts_with(kDraft);
    if (is_draft &&
        each.last_write_time(gone) < fs::file_time_type::clock::now() - std::chrono::hours(1))
      fs::remove_all(each.path(), gone);
  }
}

/// `LibTorch 2.6.0`, as the trainer says it: `dtool-trainer 0.2.0 (LibTorch 2.6.0, backends …)`.
std::string libtorch_of(const fs::path& trainer) {
  const auto told = ssh::run_to_end({trainer, "--version"});
  constexpr std::string_view kName = "LibTorch ";
  const std::size_t at = told ? told->out.find(kName) : std::string::npos;
  if (at == std::string::npos) return "the same LibTorch";
  const std::size_t end = told->out.find_first_of(",)\n", at);
  return told->out.substr(at, end == std::string::npos ? end : end - at);
}

/// What the trainer's loader finds here: files by their names.
using Libraries = std::map<std::string, fs::path>;

bool is_below(const fs::path& file, const fs::path& folder) {
  return std::ranges::mismatch(folder, file).in1 == folder.end();
}

/// Removes the libraries of the PyTorch to which `cuda` belongs. pip puts CUDA's beside it:
/// site-packages/torch/lib, site-packages/nvidia/NAME/lib. Throws std::runtime_error if `cuda`
/// belongs to no PyTorch.
TrainerBundle::UsedPyTorch leave_out_pytorch(const fs::path& cuda, Libraries& sources) {
  const fs::path package = fs::canonical(cuda).parent_path().parent_path();
  const fs::path file = package / "version.py";
  const std::string stamp = stamp_of_file(file);
  const std::string version =
      fs::exists(file) ? host::pytorch_version(killfiles::read_whole(file)) : "";
  if (version.empty())
    throw std::runtime_error(fmt::format(
        "this machine's trainer is built for GPUs with a LibTorch outside a PyTorch, and CUDA is "
        "not sent: the host needs a dtool-trainer of its own, built with {}",
        libtorch_of(trainer_beside())));
  const fs::path nvidia = package.parent_path() / "nvidia";
  std::erase_if(sources, [&](const auto& each) {
    const fs::path library = fs::canonical(each.second);
    return is_below(library, package) || is_below(library, nvidia);
  });
  return {version, file, stamp};
}

/// The parts, which have not been read.
TrainerBundle find_parts() {
  const fs::path trainer = trainer_beside();
  const fs::path worker = trainer.parent_path() / "dtool-trainer-worker";
  for (const fs::path& program : {trainer, worker}) {
    if (!fs::exists(program)) throw std::runtime_error(fmt::format("no {}", program.string()));
  }
  Libraries sources;
  add_libraries(trainer, sources);
  add_libraries(worker, sources);
  TrainerBundle bundle;
  // CUDA's libraries load others by name, which the loader does not tell of.
  const auto cuda = std::ranges::find_if(
      sources, [](const auto& each) { return each.first.starts_with("libtorch_cuda"); });
  if (cuda != sources.end()) bundle.pytorch = leave_out_pytorch(cuda->second, sources);
  sources.emplace(trainer.filename(), trainer);
  sources.emplace(worker.filename(), worker);
  for (const auto& [name, source] : sources)
    bundle.parts.push_back({"lib/" + name, source, stamp_of_file(source)});
  return bundle;
}

void keep(const TrainerBundle& bundle) {
  nlohmann::json parts = nlohmann::json::array();
  for (const auto& part : bundle.parts)
    parts.push_back({{"name", part.name}, {"source", part.source.string()}, {"stamp", part.stamp}});
  nlohmann::json stored = {{"trainer", trainer_beside().string()},
                           {"loader", stamp_of_loader()},
                           {"hash", bundle.hash},
                           {"bytes", bundle.bytes},
                           {"glibc", bundle.glibc},
                           {"parts", parts}};
  if (bundle.pytorch)
    stored["pytorch"] = {{"version", bundle.pytorch->version},
                         {"file", bundle.pytorch->file.string()},
                         {"stamp", bundle.pytorch->stamp}};
  try {
    using Handler = nlohmann::json::error_handler_t;
    killfiles::write_whole(stored_file(), stored.dump(-1, ' ', false, Handler::replace) + "\n");
  } catch (const std::system_error&) {  // then it is read again next time
  }
}

}  // namespace

fs::path trainer_beside() {
  return fs::read_symlink("/proc/self/exe").parent_path() / "dtool-trainer";
}

std::optional<TrainerBundle> known_trainer_bundle() {
  try {
    const auto stored = nlohmann::json::parse(killfiles::read_whole(stored_file()));
    if (stored.at("trainer") != trainer_beside().string() ||
        stored.at("loader") != stamp_of_loader())
      return std::nullopt;
    TrainerBundle bundle;
    bundle.hash = stored.at("hash");
    bundle.bytes = stored.at("bytes");
    bundle.glibc = stored.at("glibc");
    for (const auto& part : stored.at("parts")) {
      const std::string source = part.at("source");
      bundle.parts.push_back({part.at("name"), source, part.at("stamp")});
      if (bundle.parts.back().stamp != stamp_of_file(source)) return std::nullopt;
    }
    if (stored.contains("pytorch")) {
      const auto& used = stored.at("pytorch");
      const std::string file = used.at("file");
      bundle.pytorch = TrainerBundle::UsedPyTorch{used.at("version").get<std::string>(), file,
                                                  used.at("stamp").get<std::string>()};
      if (bundle.pytorch->stamp != stamp_of_file(file)) return std::nullopt;
    }
    return bundle;
  } catch (const nlohmann::json::exception&) {  // it was spoilt
    return std::nullopt;
  } catch (const std::system_error&) {  // there is none
    return std::nullopt;
  }
}

TrainerBundle read_trainer_bundle(Console& console) {
  if (auto known = known_trainer_bundle()) return *known;
  const ssh::EndsAtOnce ends_at_once;  // no code listens for signals while this function reads
  TrainerBundle bundle = find_parts();
  ssh::Sha256 hash;
  hash.add(kStarterText);
  for (const auto& part : bundle.parts) {
    console.progress(fmt::format("reading the trainer and its libraries: {:.0f} MB",
                                 static_cast<double>(bundle.bytes) / 1e6));
    hash.add(fmt::format("{} {}\n", part.name, fs::file_size(part.source)));
    GlibcSearch search;
    ssh::read_pieces(part.source, [&](std::string_view piece) {
      hash.add(piece);
      search.add(piece);
      bundle.bytes += piece.size();
    });
    bundle.glibc = std::max(bundle.glibc, search.most());
  }
  console.progress("");
  bundle.hash = hash.hex();
  keep(bundle);
  return bundle;
}

std::string folder_of(const TrainerBundle& bundle) {
  return "~/.dtool/trainers/" + bundle.hash;
}

tree_sync::Tree make_tree(const TrainerBundle& bundle) {
  const fs::path folder = trainers_folder() / bundle.hash;
  const ssh::EndsAtOnce ends_at_once;  // no code listens for signals while this function copies
  if (!is_whole(bundle, folder)) {
    remove_old_drafts();
    const fs::path draft = trainers_folder() / (kDraft + ssh::random_hex(8));
    try {
      copy_parts(bundle, draft);
      host::flush_disk_of(draft);
      std::error_code ignored;
      fs::remove_all(folder, ignored);  // a part of one
      if (const auto fault = rename_unless_taken(draft, folder))
        throw fs::filesystem_error("cannot keep the trainer", folder, fault);
      fs::remove_all(draft);
    } catch (...) {
      std::error_code ignored;
      fs::remove_all(draft, ignored);
      throw;
    }
  }
  host::use_version(folder.string());
  std::vector<std::string> files = {std::string(kStarter)};
  for (const auto& part : bundle.parts) files.push_back(part.name);
  return tree_sync::tree_of(folder, std::move(files));
}

int glibc_of(std::string_view libc) {
  constexpr std::string_view kBegin = "glibc 2.";
  if (!libc.starts_with(kBegin)) return 0;
  return host::parse_number<int>(
             libc.substr(kBegin.size(), libc.find('.', kBegin.size()) - kBegin.size()))
      .value_or(0);
}

std::string misfit(const TrainerBundle& bundle, const std::string& processor,
                   const std::string& libc) {
  utsname own{};
  ::uname(&own);
  if (processor != own.machine)
    return fmt::format("it is of another kind ({}) than this machine ({})", processor, own.machine);
  const int minor = glibc_of(libc);
  if (minor >= bundle.glibc) return {};
  return fmt::format("the trainer of this machine needs glibc 2.{} or later, and it has {}",
                     bundle.glibc, minor == 0 ? "another libc" : libc);
}

std::string misfit(const TrainerBundle& bundle, const host::PyTorch& pytorch,
                   const std::string& unseen) {
  if (!bundle.pytorch) return {};
  const std::string wanted =
      fmt::format("this machine's trainer is built for GPUs and uses the LibTorch of PyTorch {}",
                  bundle.pytorch->version);
  if (!unseen.empty()) return fmt::format("{}, and {}", wanted, unseen);
  if (pytorch.folder.empty()) return wanted + ", and no Python there has a PyTorch";
  if (pytorch.version != bundle.pytorch->version)
    return fmt::format("{}, and the one there is {} ({})", wanted,
                       pytorch.version.empty() ? "of an unknown version" : pytorch.version,
                       pytorch.folder);
  if (!host::can_be_searched(pytorch.folder))
    return fmt::format("{}, and the loader cannot search its folder there: {}", wanted,
                       pytorch.folder);
  return {};
}

}  // namespace dtool::cli
