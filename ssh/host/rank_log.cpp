// SPDX-License-Identifier: MIT
#include "ssh/host/rank_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "ssh/host/files.h"
#include "ssh/wire/words.h"

namespace dtool::host {

std::string rank_mark(int rank) {
  return "r" + std::to_string(rank) + ": ";
}

MarkedLine read_mark(std::string_view line) {
  constexpr std::size_t kMostDigits = 8;
  if (!line.starts_with('r')) return {{}, line};
  const std::size_t end = line.substr(0, kMostDigits + 3).find(": ");
  if (end == line.npos) return {{}, line};
  const auto rank = parse_number<std::uint32_t>(line.substr(1, end - 1));
  if (!rank) return {{}, line};
  return {static_cast<int>(*rank), line.substr(end + 2)};
}

std::string without_marks(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end == text.npos ? end : end + 1);
    text.remove_prefix(line.size());
    lines += read_mark(line).text;
  }
  return lines;
}

std::string rank_folder(const std::string& state) {
  constexpr std::string_view kEnding = ".log";
  std::error_code missing;
  std::string log = std::filesystem::read_symlink(state + "/log", missing);
  if (log.empty()) return {};
  if (log.ends_with(kEnding)) log.resize(log.size() - kEnding.size());
  return log + ".ranks";
}

std::string rank_log(const std::string& state, int attempt, int rank) {
  const std::string folder = rank_folder(state);
  if (folder.empty()) return {};
  const std::string again = attempt == 0 ? "" : ".attempt" + std::to_string(attempt + 1);
  return folder + "/r" + std::to_string(rank) + again + ".log";
}

void note_log_rank(const std::string& state, int rank, RankLines lines) {
  const std::string file = state + "/log_ranks";
  const bool is_marked = lines == RankLines::marked;
  const LogRanks noted = read_log_ranks(state);
  if (noted.ranks.contains(rank) && noted.are_marked == is_marked) return;
  append_to(file, (is_marked ? "marked " : "alone ") + std::to_string(rank) + "\n");
}

LogRanks read_log_ranks(const std::string& state) {
  LogRanks found;
  const std::string text = read_file(state + "/log_ranks").value_or("");
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = cut_line(rest);
    const std::string_view how = cut_word(line);
    const auto rank = parse_number<std::uint32_t>(cut_word(line));
    if (!rank || *rank > 10'000'000 || (how != "marked" && how != "alone")) continue;
    found.ranks.insert(static_cast<int>(*rank));
    found.are_marked = found.are_marked || how == "marked";
  }
  return found;
}

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
