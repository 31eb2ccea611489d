// SPDX-License-Identifier: MIT
#include "trainer/objectnav/paths.h"

#include <algorithm>

#include "trainer/objectnav/view.h"

namespace dtool::trainer {
namespace {

/// Calls `use(cell, heading)` for every free cell and heading from which the object in `object` is
/// seen within the success distance.
template <class Use>
void for_success_views(const EnvironmentSettings& settings, const House& house, Cell object,
                       const Use& use) {
  // Beyond this row there is nothing within reach.
  const auto rows = static_cast<int>(kMostSuccessDistance / kCellMetres);
  for (int place = 0; place < kViewCells; ++place) {
    if (kViewPlaces[static_cast<std::size_t>(place)].forward > rows) break;
    if (!is_within_reach(settings, place)) continue;
    for (Heading heading = 0; heading < 4; ++heading) {
      const auto cell = static_cast<Cell>(2 * object - cell_in_view(object, heading, place));
      if (house.is_free(cell) && sees(house, cell, heading, place)) use(cell, heading);
    }
  }
}

/// The cells to be visited, nearest first. Each is added at most once.
struct Queue {
  std::array<Cell, kMostSide * kMostSide> cells;
  std::size_t end = 0;

  void add(Cell cell) { cells[end++] = cell; }
};

}  // namespace

void find_paths(const EnvironmentSettings& settings, const House& house, int goal,
                GoalField& field) {
  field.distance.fill(kUnreachable);
  field.success_headings.fill(0);
  Queue queue;
  for (const Object& object : house.objects()) {
    if (object.kind != goal) continue;
    for_success_views(settings, house, object.cell, [&](Cell cell, Heading heading) {
      const auto index = static_cast<std::size_t>(cell);
      field.success_headings[index] |= static_cast<std::uint8_t>(1 << heading);
      if (field.distance[index] == 0) return;
      field.distance[index] = 0;
      queue.add(cell);
    });
  }
  for (std::size_t next = 0; next < queue.end; ++next) {
    const Cell cell = queue.cells[next];
    const auto distance =
        static_cast<std::uint16_t>(field.distance[static_cast<std::size_t>(cell)] + 1);
    for (const Cell ahead : kAhead) {
      const auto neighbour = static_cast<Cell>(cell + ahead);
      std::uint16_t& known = field.distance[static_cast<std::size_t>(neighbour)];
      if (known != kUnreachable || !house.is_free(neighbour)) continue;
      known = distance;
      queue.add(neighbour);
    }
  }
}

bool can_be_found(const EnvironmentSettings& settings, const House& house, Cell cell) {
  bool is_found = false;
  for_success_views(settings, house, cell, [&](Cell, Heading) { is_found = true; });
  return is_found;
}

bool is_within_reach(const EnvironmentSettings& settings, int place) {
  const auto [forward, right] = kViewPlaces[static_cast<std::size_t>(place)];
  const double cells = settings.success_distance / kCellMetres;
  return forward * forward + right * right <= cells * cells + 1e-9;
}

}  // namespace dtool::trainer
