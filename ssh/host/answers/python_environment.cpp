// SPDX-License-Identifier: MIT
#include "ssh/host/answers/python_environment.h"

#include <unistd.h>

#include <string_view>

#include "ssh/host/answers/environment_list.h"
#include "ssh/host/answers/used_by_runs.h"
#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/tree/tree_folder.h"
#include "ssh/host/versions.h"
#include "ssh/wire/frames.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds kForAnswer{30};
constexpr std::chrono::minutes kForBuild{60};

/// `3.11.2 x86_64 5.10 12040 glibc 2.36`. The oldest that packages are still made for is 3.8.
constexpr const char* kTell =
    "import os, platform, re, sys\n"
    "assert sys.version_info >= (3, 8)\n"
    "libc = os.confstr('CS_GNU_LIBC_VERSION') if 'CS_GNU_LIBC_VERSION' in os.confstr_names else "
    "''\n"
    "try:\n"
    "    import ctypes\n"
    "    cuda = ctypes.c_int(0)\n"
    "    ctypes.CDLL('libcuda.so.1').cuDriverGetVersion(ctypes.byref(cuda))\n"
    "    cuda = cuda.value\n"
    "except Exception:\n"
    "    cuda = 0\n"
    "kernel = '.'.join(re.findall('[0-9]+', platform.release())[:2]) or '0'\n"
    "print('%d.%d.%d' % sys.version_info[:3], platform.machine(), kernel, cuda, libc)\n";

/// `torch==2.5.1`, or all packages if a word is given: what python3 finds here.
constexpr const char* kTellPackages =
    "import importlib.metadata, sys\n"
    "sys.path.remove('')\n"
    "try:\n"
    "    found = (importlib.metadata.distributions() if sys.argv[1:] else\n"
    "             [importlib.metadata.distribution('torch')])\n"
    "    for each in found:\n"
    "        print('%s==%s' % (each.metadata['Name'], each.version))\n"
    "except importlib.metadata.PackageNotFoundError:\n"
    "    pass\n";

/// Its paths are written into its programs, so it is made where it stays.
struct Folders {
  std::string all;       ///< `~/.dtool/environments/HASH`
  std::string packages;  ///< with `lock.txt`; gone when it is built
  std::string environment;
  std::string complete;  ///< its list, which says so (environment_list.h)
};

Folders folders_of(const PythonRequest& request) {
  const std::string all = expand_home("~/.dtool/environments/" + request.environment);
  return {all, all + "/packages", all + (request.is_conda ? "/conda" : "/venv"), all + "/complete"};
}

/// Why it cannot be used as it is; empty: it is whole.
std::string find_fault(const Folders& folders) {
  std::string change = find_environment_change(folders.environment, folders.complete);
  // The link in a virtual environment leads to the host's python3, which may have been removed
  // since. conda's packages may be without Python.
  const bool has_python = exists(folders.environment + "/conda-meta/history") ||
                          ::access((folders.environment + "/bin/python3").c_str(), X_OK) == 0;
  return change.empty() && !has_python ? "its python3 leads nowhere" : change;
}

/// A run that goes on must not lose what it works with.
void refuse_if_used(const PythonRequest& request, const Folders& folders,
                    const std::string& fault) {
  const std::string run = run_that_uses(request.environment);
  if (run.empty() || !exists(folders.environment)) return;
  throw Refused("the environment " + folders.environment + " is not as it was built: " + fault +
                    ", and the run " + run + " uses it",
                "dtool kill " + run + ", or wait for its end: then it is built anew");
}

void remove(const std::string& path) {
  run_program({"rm", "-rf", "--", path}, kForBuild);
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
  // With this process goes the lock, and another dtool may build in the same folder.
  const ChildResult told = run_program(words, kForBuild, {}, Orphan::ends);
  if (told.ok()) return true;
  reply.fault = std::string(doing) + ": " + complaint(told);
  return false;
}

/// The packages lie as in a virtual environment, which is made around them.
bool build_of_python(const PythonRequest& request, const Folders& folders, PythonReply& reply) {
  if (!exists(folders.packages + "/lock.txt") ||
      std::rename(folders.packages.c_str(), folders.environment.c_str()) != 0) {
    reply.fault = "its packages are not there";
    return false;
  }
  std::vector<std::string> words = {"python3", "-I", "-m", "venv", "--without-pip"};
  if (request.sees_system) words.emplace_back("--system-site-packages");
  words.push_back(folders.environment);
  if (!step(words, "python3 -m venv", reply)) return false;
  // Some packages hold files for other Pythons, which cannot be compiled.
  run_program({folders.environment + "/bin/python3", "-I", "-m", "compileall", "-qq", "-j", "0",
               folders.environment + "/lib"},
              kForBuild, {}, Orphan::ends);
  return true;
}

bool build_of_conda(const Folders& folders, PythonReply& reply) {
  const std::string installer = folders.packages + "/" + kCondaInstaller;
  if (!exists(installer)) {
    reply.fault = "its packages are not there";
    return false;
  }
  const std::string scratch = folders.all + "/scratch";
  remove(scratch);
  const bool is_made =
      step({"python3", "-I", installer, folders.environment, scratch}, "py-rattler", reply);
  remove(scratch);
  return is_made;
}

void build(const PythonRequest& request, const Folders& folders, PythonReply& reply) {
  make_folders(folders.all);
  // Hosts may share the folder.
  const Descriptor lock = lock_file(folders.all + "/lock", 3'600'000);
  if (!lock.is_open()) {
    reply.fault = "another dtool has been building it for an hour";
    return;
  }
  const std::string fault = find_fault(folders);
  if (fault.empty()) {  // built by another run, whose packages may have come once more
    remove(folders.packages);
    return;
  }
  refuse_if_used(request, folders, fault);
  ::unlink(folders.complete.c_str());
  remove(folders.environment);
  const bool is_made =
      request.is_conda ? build_of_conda(folders, reply) : build_of_python(request, folders, reply);
  if (!is_made) {
    remove(folders.environment);
    return;
  }
  try {
    list_environment(folders.environment, folders.complete);
  } catch (const std::runtime_error& error) {
    reply.fault = error.what();
    return;
  }
  remove(folders.packages);
}

}  // namespace

PythonReply look_at_python() {
  PythonReply reply;
  if (!is_program("python3")) return reply;
  const ChildResult told = run_program({"python3", "-I", "-c", kTell}, kForAnswer);
  if (!told.ok()) {
    if (told.err.find("AssertionError") == told.err.npos) reply.fault = complaint(told);
    return reply;
  }
  std::string_view text = told.out;
  std::string_view line = cut_line(text);
  reply.version = cut_word(line);
  reply.processor = cut_word(line);
  reply.kernel = cut_word(line);
  reply.cuda = parse_number<std::int64_t>(cut_word(line)).value_or(0);
  const std::string_view libc = cut_word(line);
  reply.libc = std::string(libc).append(" ").append(cut_word(line));
  return reply;
}

int minor_of_python(std::string_view version) {
  if (!version.starts_with("3.")) return 0;
  version.remove_prefix(2);
  return parse_number<int>(version.substr(0, version.find('.'))).value_or(0);
}

PythonReply ready_python(const PythonRequest& request) {
  PythonReply reply = look_at_python();
  if (reply.version.empty()) return reply;
  if (request.environment.empty()) {
    std::vector<std::string> words = {"python3", "-E", "-c", kTellPackages};
    if (request.sees_system) words.emplace_back("all");
    reply.packages = run_program(words, kForAnswer).out;
    return reply;
  }
  if (!is_hash(request.environment)) throw BadMessage("the environment's name is no hash");
  const Folders folders = folders_of(request);
  if (request.builds) build(request, folders, reply);
  const std::string fault = find_fault(folders);
  reply.is_built = fault.empty();
  if (!reply.is_built) {
    if (!request.builds) refuse_if_used(request, folders, fault);
    if (reply.fault.empty() && exists(folders.complete)) reply.fault = fault;
    return reply;
  }
  for (const std::string& old : mark_used(folders.all)) {
    if (run_that_uses(old.substr(old.rfind('/') + 1)).empty()) remove(old);
  }
  return reply;
}

}  // namespace dtool::host
