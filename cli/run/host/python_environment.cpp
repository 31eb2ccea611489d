// SPDX-License-Identifier: MIT
#include "cli/run/host/python_environment.h"

#include <unistd.h>

#include <string_view>

#include "cli/run/host/used_by_runs.h"
#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/frames.h"
#include "ssh/host/versions.h"
#include "ssh/host/words.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds kForAnswer{30};
constexpr std::chrono::minutes kForPip{60};

/// `3.11 x86_64 glibc 2.36`. The oldest that current pip runs on is 3.8.
constexpr const char* kTell =
    "import os, platform, sys\n"
    "assert sys.version_info >= (3, 8)\n"
    "libc = os.confstr('CS_GNU_LIBC_VERSION') if 'CS_GNU_LIBC_VERSION' in os.confstr_names else "
    "''\n"
    "print('%d.%d' % sys.version_info[:2], platform.machine(), libc)\n";

/// Its paths are written into its programs, so it is made where it stays.
struct Folders {
  std::string all;     ///< `~/.dtool/environments/HASH`
  std::string wheels;  ///< with `lock.txt`; removed when it is built
  std::string venv;
  std::string complete;  ///< a file that says so
};

Folders folders_of(const std::string& hash) {
  const std::string all = expand_home("~/.dtool/environments/" + hash);
  return {all, all + "/wheels", all + "/venv", all + "/complete"};
}

bool is_whole(const Folders& folders) {
  // The link in it leads to the host's python3, which may have been removed since.
  return exists(folders.complete) && ::access((folders.venv + "/bin/python3").c_str(), X_OK) == 0;
}

void remove(const std::string& path) {
  run_program({"rm", "-rf", "--", path}, kForPip);
}

/// The last line that tells something, of what a program complained.
std::string complaint(const ChildResult& told) {
  if (told.timed_out) return "it took more than an hour";
  std::string last = "exit code " + std::to_string(told.exit_code);
  for (std::string_view rest = told.err; !rest.empty();) {
    const std::string_view line = cut_line(rest);
    if (!line.empty() && !line.starts_with("WARNING")) last = line;
  }
  return last;
}

/// Runs a step; its complaint becomes the reply's fault.
bool step(const std::vector<std::string>& words, const char* doing, PythonReply& reply) {
  const ChildResult told = run_program(words, kForPip);
  if (told.ok()) return true;
  reply.fault = std::string(doing) + ": " + complaint(told);
  return false;
}

/// The wheel of pip among the wheels: it runs without being installed.
std::string find_pip(const std::string& wheels) {
  for (const std::string& name : list_folder(wheels)) {
    if (name.starts_with("pip-") && name.ends_with(".whl")) return wheels + "/" + name;
  }
  return {};
}

void build(const Folders& folders, PythonReply& reply) {
  make_folders(folders.all);
  // Hosts may share the folder.
  const Descriptor lock = lock_file(folders.all + "/lock", 3'600'000);
  if (!lock.is_open()) {
    reply.fault = "another dtool has been building it for an hour";
    return;
  }
  if (is_whole(folders)) return;
  ::unlink(folders.complete.c_str());
  remove(folders.venv);
  const std::string pip = find_pip(folders.wheels);
  if (pip.empty()) {
    reply.fault = "its wheels are not there";
    return;
  }
  const std::string python = folders.venv + "/bin/python3";
  const bool is_made =
      step({"python3", "-I", "-m", "venv", "--without-pip", folders.venv}, "python3 -m venv",
           reply) &&
      step({python, "-I", pip + "/pip", "--isolated", "--no-input", "--disable-pip-version-check",
            "install", "--quiet", "--no-index", "--no-cache-dir", "--require-hashes",
            "--find-links", folders.wheels, "-r", folders.wheels + "/lock.txt"},
           "pip install", reply);
  if (!is_made) {
    remove(folders.venv);
    return;
  }
  write_file(folders.complete, reply.version + "\n");
  remove(folders.wheels);
}

}  // namespace

PythonReply look_at_python() {
  PythonReply reply;
  if (!is_program("python3")) return reply;
  const ChildResult told = run_program({"python3", "-I", "-c", kTell}, kForAnswer);
  if (!told.ok()) return reply;
  std::string_view text = told.out;
  std::string_view line = cut_line(text);
  reply.version = cut_word(line);
  reply.processor = cut_word(line);
  const std::string_view libc = cut_word(line);
  reply.libc = std::string(libc).append(" ").append(cut_word(line));
  return reply;
}

PythonReply ready_python(const PythonRequest& request) {
  PythonReply reply = look_at_python();
  if (request.environment.empty() || reply.version.empty()) return reply;
  if (!is_hash(request.environment)) throw BadMessage("the environment's name is no hash");
  const Folders folders = folders_of(request.environment);
  if (request.builds && !is_whole(folders)) build(folders, reply);
  reply.is_built = is_whole(folders);
  if (!reply.is_built) return reply;
  for (const std::string& old : mark_used(folders.all)) {
    if (!is_used_by_a_run(old.substr(old.rfind('/') + 1))) remove(old);
  }
  return reply;
}

}  // namespace dtool::host
