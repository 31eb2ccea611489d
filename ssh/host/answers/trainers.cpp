// SPDX-License-Identifier: MIT
#include "ssh/host/answers/trainers.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "ssh/host/answers/pytorch.h"
#include "ssh/host/answers/used_by_runs.h"
#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/versions.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

constexpr std::chrono::seconds kForTrainer{60};
constexpr std::chrono::seconds kForSelfCheck{10};

struct Trainer {
  std::string path;
  std::string version;            ///< its first line
  std::string missing_libraries;  ///< or empty
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

/// Removes the files of a bundle.
void remove_bundle(const std::string& folder) {
  for (const std::string& name : list_folder(folder + "/lib"))
    ::unlink((folder + "/lib/" + name).c_str());
  ::rmdir((folder + "/lib").c_str());
  ::unlink((folder + "/dtool-trainer").c_str());
  ::rmdir(folder.c_str());
}

std::string libc_version(CommandPrefix words) {
  words.insert(words.end(), {"getconf", "GNU_LIBC_VERSION"});
  const ChildResult told = run_program(words, kForSelfCheck);
  std::string_view text = told.out;
  return told.ok() ? std::string(cut_line(text)) : "";
}

}  // namespace

void use_bundle(const std::string& folder) {
  for (const std::string& old : mark_used(folder)) {
    if (run_that_uses(old.substr(old.rfind('/') + 1)).empty()) remove_bundle(old);
  }
}

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
  if (folder_of(found.path) == bundle) use_bundle(bundle);
  if (request.experiment.text.empty()) return;
  CommandPrefix words = inside;
  words.push_back(found.path);
  reply.experiment_fault = check_experiment(request, words);
}

}  // namespace dtool::host
