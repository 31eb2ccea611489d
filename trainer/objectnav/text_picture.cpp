// SPDX-License-Identifier: MIT
// A cell is two characters wide, which makes it about square.
#include "trainer/objectnav/text_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "trainer/objectnav/view.h"

namespace dtool::trainer {
namespace {

constexpr std::array<std::string_view, 4> kArrows = {"^ ", "> ", "v ", "< "};

std::string symbol(int seen) {
  if (seen == kGoalObject) return "**";
  if (seen >= kObject) return {static_cast<char>('A' + seen - kObject), ' '};
  if (seen == kHidden) return "  ";
  if (seen == kWall) return "##";
  if (seen == kDoor) return "+ ";
  if (seen == kLowFurniture) return "oo";
  if (seen == kTallFurniture) return "TT";
  return ". ";
}

/// The map's rows, with `S` at the start and `,` where the agent has been.
std::vector<std::string> map_rows(const Trace& trace, std::size_t step) {
  const House& house = trace.house;
  const Episode& now = trace.episodes[step];
  std::vector<std::string> rows;
  for (int y = 0; y < house.height; ++y) {
    std::string row;
    for (int x = 0; x < house.width; ++x) {
      const Cell cell = cell_at(x, y);
      const auto end = trace.episodes.begin() + static_cast<std::ptrdiff_t>(step);
      const bool was_here = std::any_of(trace.episodes.begin(), end,
                                        [&](const Episode& each) { return each.cell == cell; });
      const int seen = house.seen(cell);
      if (cell == now.cell) {
        row += kArrows[static_cast<std::size_t>(now.heading)];
      } else if (cell == trace.episodes[0].cell) {
        row += "S ";
      } else if (was_here) {
        row += ", ";
      } else {
        row += symbol(seen == kObject + now.goal ? kGoalObject : seen);
      }
    }
    rows.push_back(row);
  }
  return rows;
}

/// The agent's view, the farthest row first, with the agent below the middle of the last row.
std::vector<std::string> view_rows(const Trace& trace, std::size_t step) {
  const Episode& now = trace.episodes[step];
  std::array<std::uint8_t, kObservationBytes> observation;
  observe(trace.house, now, observation.data());
  constexpr int kHalf = view_half_width(kViewDepth);
  std::vector<std::string> rows(kViewDepth + 1, std::string(2 * (2 * kHalf + 1), ' '));
  for (std::size_t i = 0; i < kViewCells; ++i) {
    const auto [forward, right] = kViewPlaces[i];
    rows[static_cast<std::size_t>(kViewDepth - forward)].replace(
        static_cast<std::size_t>(2 * (kHalf + right)), 2, symbol(observation[i]));
  }
  rows.back().replace(2 * kHalf, 2, "^ ");
  constexpr std::array<std::string_view, kHeads> kLooks = {"to its left", "straight on",
                                                           "to its right"};
  rows.insert(rows.begin(), fmt::format("seen, looking {}:", kLooks[now.head]));
  return rows;
}

std::string legend(const Trace& trace) {
  std::string text = "## wall, + door, oo low furniture, TT tall furniture, ** goal";
  for (const Object& object : trace.house.objects()) {
    if (object.kind == trace.last().goal) continue;
    text += fmt::format(", {} {}", static_cast<char>('A' + object.kind), kObjectNames[object.kind]);
  }
  return text + ", S start, ',' path\n";
}

}  // namespace

std::string text_picture(const Trace& trace, std::size_t step) {
  const auto map = map_rows(trace, step);
  const auto view = view_rows(trace, step);
  std::string text = fmt::format("{}\n\n", trace.name);
  for (std::size_t i = 0; i < std::max(map.size(), view.size()); ++i) {
    const std::string left = i < map.size() ? map[i] : "";
    std::string line =
        i < view.size() ? fmt::format("{:<{}}   {}", left, map[0].size(), view[i]) : left;
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  text += "\n" + legend(trace);
  if (step < trace.moves.size()) {
    text += fmt::format("step {}: {}{}\n", step + 1,
                        kActionNames[static_cast<std::size_t>(trace.moves[step])],
                        was_blocked(trace, step) ? ", but the way is blocked" : "");
  } else {
    text += describe_end(trace) + "\n";
  }
  return text;
}

}  // namespace dtool::trainer
