// SPDX-License-Identifier: MIT
#include "ssh/host/session/log_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "ssh/host/explaining_line.h"
#include "ssh/host/files.h"
#include "ssh/host/rank_log.h"
#include "ssh/wire/run.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

constexpr std::size_t kOfLog = 64U << 10U;
constexpr std::size_t kOfMetrics = 65536;
constexpr std::size_t kLines = 5;
constexpr std::size_t kLongestLine = 1000;
constexpr std::uint64_t kFull = 1U << 20U;  // bytes that are free

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\v\f") == line.npos;
}

/// The folder at which the file system of a path is mounted.
std::string mount_point(std::string path) {
  struct stat here;
  if (::stat(path.c_str(), &here) != 0) return path;
  while (path != "/" && path != ".") {
    struct stat above;
    const std::string parent = folder_of(path);
    if (::stat(parent.c_str(), &above) != 0 || above.st_dev != here.st_dev) break;
    path = parent;
  }
  return path;
}

}  // namespace

std::string read_end(const std::string& path, std::size_t most) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat found;
  if (!file.is_open() || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) return {};
  const auto size = static_cast<std::size_t>(found.st_size);
  std::string text(std::min(size, most), '\0');
  const ssize_t got =
      ::pread(file.get(), text.data(), text.size(), static_cast<off_t>(size - text.size()));
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return text;
}

LogTail read_log_tail(const std::string& path, Marks marks, std::optional<int> rank) {
  constexpr std::string_view kTrainer = "dtool-trainer: ";
  std::string text = read_end(path, kOfLog);
  for (char& each : text) {
    if (each == '\r') each = '\n';  // a progress bar returns its carriage
    if (each == '\0') each = ' ';
  }
  LogTail end;
  std::string own;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view whole = cut_line(rest);
    const MarkedLine marked = marks == Marks::yes ? read_mark(whole) : MarkedLine{{}, whole};
    const std::string_view line = marked.text;
    if (marks == Marks::yes && rank && marked.rank != rank) continue;
    if (is_blank(line) || line.starts_with(kFailurePrefix) || line.starts_with("mpirun: "))
      continue;
    if (line.starts_with(kTrainer)) {
      end.said = line.substr(kTrainer.size());
      continue;
    }
    if (line.starts_with("dtool: rank ")) {
      end.said = line.substr(line.find(' ') + 1);
    } else {
      own.append(line).append("\n");
    }
    end.last = line.substr(0, kLongestLine);
    end.lines.emplace_back(whole.substr(0, kLongestLine));
  }
  if (end.lines.size() > kLines)
    end.lines.erase(end.lines.begin(), end.lines.end() - static_cast<std::ptrdiff_t>(kLines));
  end.explanation = explaining_line(own);
  return end;
}

std::string newest_event(const std::string& path, const std::vector<std::string>& names) {
  const std::string text = read_end(path, kOfMetrics);
  std::string_view newest;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = cut_line(rest);
    if (!line.ends_with('}')) continue;
    const bool has_event = line.find("\"event\"") != line.npos;
    for (const std::string& name : names) {
      const bool is_it = name.empty() ? !has_event && line.starts_with('{')
                                      : line.starts_with("{\"event\": \"" + name + "\"");
      if (is_it) newest = line;
    }
  }
  return std::string(newest);
}

std::string find_full_disk(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    struct statvfs disk;
    if (path.empty() || ::statvfs(path.c_str(), &disk) != 0 || disk.f_blocks == 0) continue;
    if (free_bytes(disk) >= kFull && free_inodes(disk).value_or(1) > 0) continue;
    char* real = ::realpath(path.c_str(), nullptr);
    const std::string at = mount_point(real != nullptr ? real : path);
    std::free(real);
    return at;
  }
  return {};
}

}  // namespace dtool::host
