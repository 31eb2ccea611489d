// SPDX-License-Identifier: MIT
// A file gets its name only when it is complete, so it can be read without the lock.
#include "trainer/data/data_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>

#include "trainer/launch/launch.h"
#include "trainer/report/written_file.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

namespace {

namespace fs = std::filesystem;

/// The file in `folder`, or it unpacked; absent when neither is there.
std::optional<fs::path> find(const fs::path& folder, const std::string& name) {
  if (fs::exists(folder / name)) return folder / name;
  if (!name.ends_with(".gz")) return std::nullopt;
  const auto unpacked = folder / name.substr(0, name.size() - 3);
  if (fs::exists(unpacked)) return unpacked;
  return std::nullopt;
}

bool is_missing(const fs::path& folder, const DataFile& file) {
  return !find(folder, file.wanted.name);
}

bool any_missing(const fs::path& folder, const std::vector<DataFile>& files) {
  return std::any_of(files.begin(), files.end(),
                     [&](const DataFile& each) { return is_missing(folder, each); });
}

void make_folder(const std::string& key, const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw UsageError(
        fmt::format("{}: cannot make '{}': {}", key, folder.string(), error.message()));
  }
}

/// Whether `path`, which is there, is the file that is meant.
void compare(const fs::path& path, const WantedFile& wanted, const std::string& why_it_matters) {
  const auto sum = sha256_of(path, wanted.counted);
  if (sum == wanted.sha256) return;
  throw UsageError(fmt::format("{} is another file than was meant: its sha256 is {}, not {}{}",
                               path.string(), sum, wanted.sha256, why_it_matters),
                   "move it away, or give another data.path");
}

/// A folder that lacks files is only filled when the others in it are of the same set.
void refuse_strangers(const fs::path& folder, const std::vector<DataFile>& files) {
  for (const DataFile& each : files) {
    const auto path = find(folder, each.wanted.name);
    if (path && each.compared == Compared::when_others_are_missing) {
      compare(*path, each.wanted, ", so what is missing beside it is not downloaded");
    }
  }
}

/// A FolderLock, told of if it has to be waited for.
struct Locked {
  Locked(const fs::path& folder, Waits waits, TransferProgress& progress)
      : lock(folder, [&](const std::string& holder) {
          if (waits == Waits::silent) return;
          progress.say(fmt::format("waiting for {}, which fills '{}'", holder, folder.string()));
        }) {}
  FolderLock lock;
};

void fetch(const fs::path& folder, const std::vector<DataFile>& files, const DataPlace& place,
           Waits waits, TransferProgress& progress) {
  make_folder("data.path", folder);
  const Locked locked(folder, waits, progress);
  if (!any_missing(folder, files)) return;  // another process was first
  refuse_strangers(folder, files);
  for (const DataFile& each : files) {
    if (is_missing(folder, each)) download(each.wanted, place.mirrors, folder, progress);
  }
}

[[noreturn]] void refuse_missing(const fs::path& folder, const std::vector<DataFile>& files,
                                 const DataPlace& place) {
  const auto missing = std::find_if(files.begin(), files.end(),
                                    [&](const DataFile& each) { return is_missing(folder, each); });
  throw UsageError(fmt::format("no {} in '{}'", missing->wanted.name, folder.string()), place.hint);
}

/// rsync's quick check: the same size and time of change, which some disks keep in whole seconds,
/// and FAT in every other one.
bool is_copy(const fs::path& copy, const fs::path& original) {
  std::error_code error;
  const auto changed = fs::last_write_time(copy, error);
  if (error || fs::file_size(copy, error) != fs::file_size(original) || error) return false;
  const auto difference = changed - fs::last_write_time(original);
  return difference < std::chrono::seconds(2) && difference > -std::chrono::seconds(2);
}

void copy_whole(const fs::path& from, const fs::path& to, TransferProgress& progress) {
  const fs::path part = to.string() + ".part";
  progress.begin(to.filename().string(), 0);
  std::error_code error;
  fs::copy_file(from, part, fs::copy_options::overwrite_existing, error);
  if (error) {
    const auto free = fs::space(to.parent_path()).available;
    throw UsageError(fmt::format("cannot copy {} to '{}': {}; {} are free there", from.string(),
                                 to.parent_path().string(), error.message(),
                                 human_bytes(static_cast<std::int64_t>(free))),
                     "make room, or give another data.copy_to");
  }
  fs::permissions(part, fs::perms::owner_write, fs::perm_options::add);
  fs::last_write_time(part, fs::last_write_time(from));
  name_when_whole(part, to);
  progress.finish(static_cast<std::int64_t>(fs::file_size(to)), from.parent_path().string());
}

std::vector<fs::path> copy_all(const std::vector<fs::path>& originals, const fs::path& folder,
                               Waits waits, TransferProgress& progress) {
  std::vector<fs::path> copies;
  for (const auto& each : originals) copies.push_back(folder / each.filename());
  const auto all_there = [&] {
    for (std::size_t i = 0; i < copies.size(); ++i) {
      if (!is_copy(copies[i], originals[i])) return false;
    }
    return true;
  };
  if (all_there()) return copies;
  make_folder("data.copy_to", folder);
  const Locked locked(folder, waits, progress);
  for (std::size_t i = 0; i < copies.size(); ++i) {
    if (!is_copy(copies[i], originals[i])) copy_whole(originals[i], copies[i], progress);
  }
  return copies;
}

}  // namespace

std::vector<fs::path> provide_files(const std::vector<DataFile>& files, const DataPlace& place,
                                    const Environment& environment, Waits waits,
                                    TransferProgress& progress) {
  const fs::path folder = expand_path("data.path", place.path, environment);
  if (any_missing(folder, files)) {
    if (place.mirrors.urls.empty()) refuse_missing(folder, files, place);
    fetch(folder, files, place, waits, progress);
  }
  std::vector<fs::path> paths;
  for (const DataFile& each : files) {
    paths.push_back(find(folder, each.wanted.name)->lexically_normal());
    if (each.compared == Compared::always && !each.wanted.sha256.empty()) {
      compare(paths.back(), each.wanted, "");
    }
  }
  if (place.copy_to.empty()) return paths;
  return copy_all(paths, expand_path("data.copy_to", place.copy_to, environment), waits, progress);
}

// Works like a shell, but refuses `~user` and defaults.

namespace {

bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

struct Expansion {
  const std::string& key;
  const std::string& text;
  const Environment& environment;

  [[noreturn]] void refuse(const std::string& why) const {
    throw UsageError(fmt::format("{} '{}': {}", key, text, why),
                     "~, $NAME and ${NAME} are replaced on each machine; $$ is a $");
  }

  std::string value_of(const std::string& name) const {
    const auto value = environment(name);
    if (!value) refuse(fmt::format("the environment variable {} is not set", name));
    if (value->empty()) refuse(fmt::format("the environment variable {} is empty", name));
    return *value;
  }

  /// Replaces the variable that begins with the `$` at `at`; returns the place after it.
  std::size_t variable(std::size_t at, std::string& into) const {
    const std::size_t begin = at + 1;
    if (text.compare(begin, 1, "$") == 0) {
      into += '$';
      return begin + 1;
    }
    const bool braced = text.compare(begin, 1, "{") == 0;
    const auto first = text.begin() + static_cast<std::ptrdiff_t>(begin + (braced ? 1 : 0));
    const auto last = std::find_if_not(first, text.end(), is_of_name);
    const std::string name(first, last);
    if (name.empty()) refuse("a $ without a variable's name");
    if (braced && (last == text.end() || *last != '}')) refuse("a ${ without its }");
    into += value_of(name);
    return static_cast<std::size_t>(last - text.begin()) + (braced ? 1 : 0);
  }
};

}  // namespace

std::filesystem::path expand_path(const std::string& key, const std::string& text,
                                  const Environment& environment) {
  const Expansion expansion{key, text, environment};
  std::string path;
  std::size_t at = 0;
  if (text.starts_with('~')) {
    if (text.size() > 1 && text[1] != '/') expansion.refuse("another user's home");
    path = expansion.value_of("HOME");
    at = 1;
  }
  while (at < text.size()) {
    if (text[at] == '$') {
      at = expansion.variable(at, path);
    } else {
      path += text[at++];
    }
  }
  return path;
}

namespace {

using Clock = LastSign::Clock;

constexpr const char* kName = ".dtool-lock";

timespec last_touched(int descriptor) {
  struct stat state {};
  fstat(descriptor, &state);
  return state.st_mtim;
}

std::string this_process() {
  return fmt::format("process {} on {}", getpid(), host_name());
}

}  // namespace

LastSign::Clock::duration LastSign::silence(const timespec& sign, Clock::time_point now) {
  if (sign.tv_sec != sign_.tv_sec || sign.tv_nsec != sign_.tv_nsec) {
    sign_ = sign;
    since_ = now;
  }
  return now - since_;
}

FolderLock::FolderLock(const std::filesystem::path& folder,
                       const std::function<void(const std::string&)>& waiting, Patience patience)
    : file_(folder / kName),
      patience_(patience),
      descriptor_(open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (!descriptor_.is_open()) {
    throw UsageError(
        fmt::format("cannot write into '{}': {}", folder.string(), std::strerror(errno)),
        "give a folder of your own in data.path");
  }
  wait(waiting);
  // The holder's name is only for messages, so a failure to write it is ignored.
  const std::string me = this_process();
  [[maybe_unused]] const bool written = ftruncate(descriptor_.get(), 0) == 0 &&
                                        pwrite(descriptor_.get(), me.data(), me.size(), 0) >= 0;
  signs_ = std::jthread([this](const std::stop_token& ended) { give_signs(ended); });
}

bool FolderLock::take() {
  if (flock(descriptor_.get(), LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK || errno == EINTR) return false;
  throw UsageError(fmt::format("cannot lock {}: {}", file_.string(), std::strerror(errno)),
                   "give a folder on a disk of this machine in data.path, or put the files there");
}

void FolderLock::wait(const std::function<void(const std::string&)>& waiting) {
  if (take()) return;
  waiting(holder());
  LastSign last(last_touched(descriptor_.get()), Clock::now());
  auto pause = std::chrono::milliseconds(10);
  while (!take()) {
    if (last.silence(last_touched(descriptor_.get()), Clock::now()) > patience_.silence) {
      throw UsageError(
          fmt::format("{} holds {} and has given no sign of life for {} s", holder(),
                      file_.string(),
                      std::chrono::duration_cast<std::chrono::seconds>(patience_.silence).count()),
          "end that process, or give another data.path");
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(250));
  }
}

std::string FolderLock::holder() const {
  char text[512];
  const auto size = pread(descriptor_.get(), text, sizeof text, 0);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : "another process";
}

void FolderLock::give_signs(const std::stop_token& ended) {
  std::mutex mutex;
  std::condition_variable_any waits;
  std::unique_lock lock(mutex);
  while (!ended.stop_requested()) {
    futimens(descriptor_.get(), nullptr);
    waits.wait_for(lock, ended, patience_.beat, [] { return false; });
  }
}

}  // namespace dtool::trainer
