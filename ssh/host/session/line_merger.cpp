// SPDX-License-Identifier: MIT
#include "ssh/host/session/line_merger.h"

#include <algorithm>

#include "ssh/host/rank_log.h"

namespace dtool::host {
namespace {

constexpr Time kBetweenStates = std::chrono::seconds(5);

}  // namespace

LineMerger::LineMerger(const std::vector<int>& ranks) {
  for (const int rank : ranks) ranks_.push_back({rank_mark(rank), {}, {}, -kBetweenStates, 0});
}

void LineMerger::end_line(Rank& rank) {
  text_.append(rank.mark).append(rank.open.empty() ? rank.redrawn : rank.open).append(1, '\n');
  rank.open.clear();
  rank.redrawn.clear();
  rank.held = 0;
}

void LineMerger::show_state(Rank& rank, Time now) {
  if (rank.redrawn.empty() || now - rank.shown < kBetweenStates) return;
  rank.shown = now;
  text_.append(rank.mark).append(rank.redrawn).append(1, '\n');
  rank.redrawn.clear();
}

/// A part of a line, without its end. A carriage return before the end is part of the end.
void LineMerger::add_part(Rank& rank, std::string_view part, Time now) {
  if (!part.empty()) show_state(rank, now);
  rank.held += part.size();
  for (std::size_t end = part.find('\r'); end != part.npos; end = part.find('\r')) {
    rank.open += part.substr(0, end);
    part.remove_prefix(end + 1);
    if (rank.open.empty()) continue;
    rank.redrawn = std::move(rank.open);
    rank.open.clear();
    if (!part.empty()) show_state(rank, now);
  }
  while (!part.empty()) {
    const std::size_t fits = std::min(part.size(), kLongestLine - rank.open.size());
    rank.open += part.substr(0, fits);
    part.remove_prefix(fits);
    if (rank.open.size() != kLongestLine) continue;
    end_line(rank);
    rank.held = part.size();
  }
}

void LineMerger::add(std::size_t which, std::string_view bytes, Time now) {
  Rank& rank = ranks_[which];
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    bytes.remove_prefix(std::min(bytes.size(), part.size() + 1));
    const bool is_plain = rank.open.empty() && rank.redrawn.empty() && end != bytes.npos &&
                          part.size() < kLongestLine && part.find('\r') == part.npos;
    if (is_plain) {
      text_.append(rank.mark).append(part).append(1, '\n');
      continue;
    }
    add_part(rank, part, now);
    if (end != std::string_view::npos) end_line(rank);
  }
}

void LineMerger::end(std::size_t which) {
  Rank& rank = ranks_[which];
  if (!rank.open.empty() || !rank.redrawn.empty()) end_line(rank);
}

}  // namespace dtool::host
