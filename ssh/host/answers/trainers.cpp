// SPDX-License-Identifier: MIT
#include "ssh/host/answers/trainers.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "ssh/host/answers/survey.h"
#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/wire/words.h"

namespace dtool::host {

namespace {

constexpr std::chrono::seconds kForTrainer{60};
constexpr std::chrono::seconds kForSelfCheck{10};

struct Trainer {
  std::string path;
  std::string version;            ///< its first line
  std::string missing_libraries;  ///< the libraries that it lacks; or empty
  bool is_fit = false;
};

/// Asks a trainer for its version, which is to be `wanted`, and its libraries.
Trainer ask(const std::string& path, const std::string& wanted, CommandPrefix words) {
  words.insert(words.end(), {path, "--self_check"});
  const ChildResult told = run_program(words, kForSelfCheck);
  const std::string said = told.out + told.err;
  Trainer trainer{path, {}, {}, false};
  std::string_view rest = said;
  trainer.version = cut_line(rest);
  constexpr std::string_view kMissing = "missing: ";
  const std::string_view line = cut_line(rest);
  if (line.starts_with(kMissing)) trainer.missing_libraries = line.substr(kMissing.size());
  trainer.is_fit = told.ok() && trainer.version.starts_with("dtool-trainer " + wanted + " ");
  return trainer;
}

std::string check_experiment(const CheckRequest& request, CommandPrefix words) {
  std::string path = "/tmp/dtool_experiment.XXXXXX";
  const Descriptor file(::mkstemp(path.data()));
  if (!file.is_open()) return {};
  write_all(file.get(), request.experiment.text + "\n");
  words.insert(words.end(),
               {"--check", path, "--distributed_nodes", std::to_string(request.machines),
                "--distributed_ip_and_port", "127.0.0.1:1"});
  const ChildResult told = run_program(words, kForTrainer);
  ::unlink(path.c_str());
  if (told.ok()) return {};
  std::string said = told.out + told.err;
  for (std::size_t at = said.find(path); at != said.npos; at = said.find(path))
    said.replace(at, path.size(), "experiment");
  return as_line(said);
}

std::string libc_version(CommandPrefix words) {
  words.insert(words.end(), {"getconf", "GNU_LIBC_VERSION"});
  const ChildResult told = run_program(words, kForSelfCheck);
  std::string_view text = told.out;
  return told.ok() ? std::string(cut_line(text)) : "";
}

}  // namespace

/// Looks for the PyTorch whose LibTorch the bundle uses, and tells it to the programs that this
/// process starts. Whether it is there.
bool lend_pytorch(const CheckRequest& request, const CommandPrefix& inside, CheckReply& reply) {
  reply.pytorch = find_pytorch(inside);
  if (reply.pytorch.version != request.bundle_pytorch || !can_be_searched(reply.pytorch.folder))
    return false;
  ::setenv(kPyTorchVariable, reply.pytorch.folder.c_str(), 1);
  return true;
}

void find_trainer(const CheckRequest& request, const CommandPrefix& inside, CheckReply& reply) {
  const std::string bundle = expand_home("~/.dtool/trainers/" + request.bundle);
  Trainer found;
  for (const std::string& name :
       {request.trainer, expand_home("~/.dtool/bin/dtool-trainer"), std::string("dtool-trainer"),
        request.bundle.empty() ? "" : bundle + "/dtool-trainer"}) {
    const std::string path = name.empty() ? "" : find_program(name);
    if (path.empty()) continue;
    const bool was_sent = path == bundle + "/dtool-trainer";
    if (was_sent && !request.bundle_pytorch.empty() && !lend_pytorch(request, inside, reply))
      continue;
    const Trainer trainer = ask(path, request.trainer_version, inside);
    if (trainer.is_fit || found.path.empty() || was_sent) found = trainer;
    if (trainer.is_fit) break;
  }
  reply.trainer = found.path;
  reply.trainer_version = found.version;
  reply.is_trainer_fit = found.is_fit;
  reply.missing_libraries = found.missing_libraries;
  if (!found.is_fit) {
    utsname system{};
    ::uname(&system);
    reply.processor = system.machine;
    reply.libc = libc_version(inside);
    if (reply.pytorch.folder.empty()) reply.pytorch = find_pytorch(inside);
    return;
  }
  if (folder_of(found.path) == bundle) use_version(bundle);
  if (request.experiment.text.empty()) return;
  CommandPrefix words = inside;
  words.push_back(found.path);
  reply.experiment_fault = check_experiment(request, words);
}

namespace {

constexpr std::chrono::seconds kForPython{60};

/// `sh -c` this with the program as its argument: the environment's Python may be in a container.
constexpr const char* kPython =
    "python=python3; command -v python3 > /dev/null || python=python; exec \"$python\" -c \"$1\"";

/// Prints the folder of the package on a line of its own, a zero byte and its version.py. A package
/// is found without being imported; the current folder is not looked at.
constexpr const char* kFind =
    "import os, sys\n"
    "sys.path = [each for each in sys.path if each]\n"
    "from importlib.util import find_spec\n"
    "spec = find_spec('torch')\n"
    "for folder in (spec and spec.submodule_search_locations or [])[:1]:\n"
    "    sys.stdout.buffer.write(b'\\n' + os.fsencode(os.path.abspath(folder)) + b'\\0')\n"
    "    with open(os.path.join(folder, 'version.py'), 'rb') as file:\n"
    "        sys.stdout.buffer.write(file.read(65536))\n";

bool is_of_version(char sign) {
  return (sign >= '0' && sign <= '9') || (sign >= 'a' && sign <= 'z') ||
         (sign >= 'A' && sign <= 'Z') || std::string_view(".+-_").find(sign) != std::string::npos;
}

}  // namespace

std::string pytorch_version(std::string_view version_py) {
  constexpr std::string_view kName = "__version__ = ";
  constexpr std::size_t kLongest = 64;
  while (!version_py.empty()) {
    std::string_view line = cut_line(version_py);
    if (!line.starts_with(kName)) continue;
    line.remove_prefix(kName.size());
    const bool is_quoted = line.size() > 2 && line.size() <= kLongest + 2 &&
                           (line.front() == '\'' || line.front() == '"') &&
                           line.back() == line.front();
    if (!is_quoted) return {};
    line = line.substr(1, line.size() - 2);
    return std::ranges::all_of(line, is_of_version) ? std::string(line) : "";
  }
  return {};
}

bool can_be_searched(std::string_view folder) {
  return folder.starts_with('/') && std::ranges::none_of(folder, [](unsigned char sign) {
           return sign < ' ' || sign == 0x7f || sign == ':' || sign == ';' || sign == '$';
         });
}

PyTorch find_pytorch(const CommandPrefix& inside) {
  CommandPrefix words = inside;
  words.insert(words.end(), {"sh", "-c", kPython, "sh", kFind});
  const std::string said = run_program(words, kForPython).out;
  const std::size_t end = said.find('\0');
  if (end == said.npos) return {};
  // The output of a .pth file comes before this place.
  const std::size_t begin = said.rfind('\n', end) + 1;
  return {said.substr(begin, end - begin), pytorch_version(std::string_view(said).substr(end + 1))};
}

}  // namespace dtool::host
