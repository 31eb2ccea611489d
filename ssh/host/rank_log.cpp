// SPDX-License-Identifier: MIT
#include "ssh/host/rank_log.h"

#include <cstdint>
#include <filesystem>
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

}  // namespace dtool::host
