// SPDX-License-Identifier: MIT
#include "ssh/host/log_times.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <optional>
#include <stdexcept>

#include "ssh/host/files.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

constexpr std::size_t kLine = 31;  // `%010lld %019lld\n`

std::string file_of(const std::string& state) {
  return state + "/log_times";
}

struct Noted {
  std::int64_t time = 0;
  std::uint64_t size = 0;
};

std::optional<Noted> read_at(int file, std::uint64_t number) {
  std::array<char, kLine> bytes{};
  const auto at = static_cast<off_t>(number * kLine);
  if (::pread(file, bytes.data(), kLine, at) != static_cast<ssize_t>(kLine)) return std::nullopt;
  std::string_view line(bytes.data(), kLine - 1);
  const auto time = parse_number<std::int64_t>(cut_word(line));
  const auto size = parse_number<std::uint64_t>(cut_word(line));
  if (!time || !size) return std::nullopt;
  return Noted{*time, *size};
}

}  // namespace

void note_log_time(const std::string& state) {
  struct stat log {};
  if (::stat((state + "/log").c_str(), &log) != 0) return;
  const Descriptor file(
      ::open(file_of(state).c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  struct stat found {};
  if (!file.is_open() || ::fstat(file.get(), &found) != 0) return;
  const std::time_t now = std::time(nullptr);
  const auto size = static_cast<std::uint64_t>(log.st_size);
  const std::uint64_t lines = static_cast<std::uint64_t>(found.st_size) / kLine;
  const auto last = lines == 0 ? std::nullopt : read_at(file.get(), lines - 1);
  if (last && last->size == size) return;
  if (last && last->time == now && last->size < size) return;
  // A full disk took only a part of a line.
  const auto whole = static_cast<off_t>(lines * kLine);
  if (found.st_size != whole && ::ftruncate(file.get(), whole) != 0) return;
  const bool is_spoilt = lines != 0 && !last;
  if ((last && last->size > size) || is_spoilt) {
    if (::ftruncate(file.get(), 0) != 0) return;
  }
  std::array<char, kLine + 1> line{};
  std::snprintf(line.data(), line.size(), "%010lld %019llu\n", static_cast<long long>(now),
                static_cast<unsigned long long>(size));
  [[maybe_unused]] const auto written = ::write(file.get(), line.data(), kLine);  // it may be full
}

std::uint64_t log_size_then(const std::string& state, std::int64_t age_s) {
  const Descriptor file(::open(file_of(state).c_str(), O_RDONLY | O_CLOEXEC));
  struct stat found {};
  if (!file.is_open() || ::fstat(file.get(), &found) != 0)
    throw std::runtime_error("the times of its log are not recorded");
  const std::int64_t then = std::time(nullptr) - age_s;
  // From the end: the clock may have been set back meanwhile.
  for (std::uint64_t number = static_cast<std::uint64_t>(found.st_size) / kLine; number > 0;
       --number) {
    const auto noted = read_at(file.get(), number - 1);
    if (noted && noted->time < then) return noted->size;
  }
  return 0;
}

}  // namespace dtool::host
