// SPDX-License-Identifier: MIT
#include "ssh/host/answers/python_environment.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "ssh/host/answers/survey.h"
#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/tree/tree_folder.h"
#include "ssh/host/versions.h"
#include "ssh/wire/protocol.h"
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
  std::string packages;  ///< the folder with `lock.txt`; gone when the environment is built
  std::string environment;
  std::string complete;  ///< its list, which says so
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
  const std::string_view last = last_line(told.err, "WARNING");
  return last.empty() ? "exit code " + std::to_string(told.exit_code) : std::string(last);
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
  use_version(folders.all);
  return reply;
}

namespace {

constexpr std::string_view kHead = "dtool's list of an environment's files, 1";

/// A file's name, and what is known of it.
using Listed = std::pair<std::string, std::string>;

/// Size, time, mode and target. The time is that of the last change of any kind, which no program
/// can set back. The inode is left out: some file servers number files anew.
std::string facts_of_listed(struct stat file, const std::string& target) {
  file.st_mtim = file.st_ctim;
  return facts_of(file, "", target);
}

class Lister {
 public:
  std::vector<Listed> list(const std::string& path) {
    const Descriptor folder(::open(path.c_str(), kFolder));
    if (!folder.is_open()) throw std::runtime_error(with_reason("cannot read " + path));
    look_into(folder, "");
    std::ranges::sort(files_);
    return std::move(files_);
  }

 private:
  static constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

  void look_into(const Descriptor& folder, const std::string& prefix) {
    const auto names = read_folder(folder);
    if (!names) throw std::runtime_error(with_reason("cannot read " + prefix));
    for (const std::string& each : *names) {
      if (each != "__pycache__") look_at(folder, each, prefix + each);
    }
  }

  void look_at(const Descriptor& folder, const std::string& last, const std::string& name) {
    struct stat file;
    if (::fstatat(folder.get(), last.c_str(), &file, AT_SYMLINK_NOFOLLOW) != 0)
      throw std::runtime_error(with_reason("cannot look at " + name));
    if (S_ISDIR(file.st_mode)) {
      const Descriptor inner(::openat(folder.get(), last.c_str(), kFolder));
      if (!inner.is_open()) throw std::runtime_error(with_reason("cannot read " + name));
      return look_into(inner, name + "/");
    }
    std::array<char, PATH_MAX> target;
    const ssize_t size = S_ISLNK(file.st_mode) ? ::readlinkat(folder.get(), last.c_str(),
                                                              target.data(), target.size())
                                               : 0;
    if (size < 0) throw std::runtime_error(with_reason("cannot look at " + name));
    files_.emplace_back(
        name, facts_of_listed(file, std::string(target.data(), static_cast<std::size_t>(size))));
  }

  std::vector<Listed> files_;
};

std::vector<Listed> as_listed(FileNames words) {
  std::vector<Listed> files;
  for (std::size_t i = 1; i + 1 < words.size(); i += 2)
    files.emplace_back(std::move(words[i]), std::move(words[i + 1]));
  return files;
}

/// Both are sorted.
std::string find_difference(const std::vector<Listed>& before, const std::vector<Listed>& now) {
  const auto [one, other] = std::ranges::mismatch(before, now);
  if (one == before.end() && other == now.end()) return {};
  if (other == now.end() || (one != before.end() && one->first < other->first))
    return one->first + " is gone";
  if (one == before.end() || other->first < one->first) return other->first + " was added";
  return one->first + " was changed";
}

}  // namespace

void list_environment(const std::string& folder, const std::string& list) {
  flush_disk_of(folder);
  FileNames words{std::string(kHead)};
  for (Listed& file : Lister().list(folder)) {
    words.push_back(std::move(file.first));
    words.push_back(std::move(file.second));
  }
  write_file(list, join_names(words));
}

std::string find_environment_change(const std::string& folder, const std::string& list) {
  FileNames words = split_names(read_file(list, kLargestList).value_or(""));
  if (words.empty() || words.front() != kHead) return "there is no list of its files";
  try {
    return find_difference(as_listed(std::move(words)), Lister().list(folder));
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

}  // namespace dtool::host
