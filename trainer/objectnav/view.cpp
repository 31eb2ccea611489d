// SPDX-License-Identifier: MIT
// Sets of cells of the view are bits of one number. Each opaque cell hides a set that is computed
// in advance; the hidden cells are the union of these sets.
#include "trainer/objectnav/view.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace dtool::trainer {
namespace {

static_assert(std::endian::native == std::endian::little, "bytes are taken eight at a time");

constexpr int kWords = 8;  // each word has eight cells; the last two are no cells
constexpr int kPaddedCells = 8 * kWords;

/// By heading and place: from the agent's cell to the place's.
constexpr auto kOffsets = [] {
  std::array<std::array<Cell, kPaddedCells>, 4> offsets{};
  for (std::size_t heading = 0; heading < 4; ++heading) {
    const Cell ahead = kAhead[heading];
    const Cell right = kAhead[(heading + 1) & 3];
    for (std::size_t i = 0; i < kViewCells; ++i) {
      offsets[heading][i] =
          static_cast<Cell>(kViewPlaces[i].forward * ahead + kViewPlaces[i].right * right);
    }
  }
  return offsets;
}();

constexpr std::size_t index_of(int forward, int right) {
  for (std::size_t i = 0; i < kViewCells; ++i) {
    if (kViewPlaces[i].forward == forward && kViewPlaces[i].right == right) return i;
  }
  return kViewCells;
}

enum class Halves { to_the_left, to_the_right };

/// The nearest whole number to `dividend` / `divisor`.
constexpr int divide(int dividend, int divisor, Halves halves) {
  const int doubled = 2 * dividend + divisor;
  const int quotient = doubled / (2 * divisor) - (doubled % (2 * divisor) < 0 ? 1 : 0);
  const bool is_half = doubled % (2 * divisor) == 0;
  return is_half && halves == Halves::to_the_left ? quotient - 1 : quotient;
}

using Places = std::uint64_t;  ///< a set: bit i is place i

/// By place: the places between the agent and it, on one of the two lines.
constexpr std::array<Places, kViewCells> lines(Halves halves) {
  std::array<Places, kViewCells> between{};
  for (std::size_t i = 0; i < kViewCells; ++i) {
    const auto [forward, right] = kViewPlaces[i];
    for (int row = 1; row < forward; ++row) {
      between[i] |= Places{1} << index_of(row, divide(right * row, forward, halves));
    }
  }
  return between;
}

constexpr auto kLeftLines = lines(Halves::to_the_left);
constexpr auto kRightLines = lines(Halves::to_the_right);

/// By place: the places whose line it is on.
struct Shadow {
  Places left;
  Places right;
};

constexpr auto kShadows = [] {
  std::array<Shadow, kPaddedCells> shadows{};
  for (std::size_t i = 0; i < kViewCells; ++i) {
    for (std::size_t behind = 0; behind < kViewCells; ++behind) {
      shadows[i].left |= (kLeftLines[behind] >> i & 1) << behind;
      shadows[i].right |= (kRightLines[behind] >> i & 1) << behind;
    }
  }
  return shadows;
}();

/// By eight bits: eight bytes, kSeenMask where the bit is not set.
constexpr auto kSeenBytes = [] {
  std::array<std::uint64_t, 256> bytes{};
  for (std::size_t bits = 0; bits < bytes.size(); ++bits) {
    for (std::size_t i = 0; i < 8; ++i) {
      if ((bits >> i & 1) == 0) bytes[bits] |= std::uint64_t{kSeenMask} << (8 * i);
    }
  }
  return bytes;
}();

std::uint64_t word(const std::uint8_t* bytes) {
  std::uint64_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// The highest bits of eight bytes, as the eight lowest.
Places high_bits(std::uint64_t bytes) {
  return (bytes >> 7 & 0x0101010101010101) * 0x0102040810204080 >> 56;
}

Places hidden_by(Places opaque) {
  Shadow shadow{};
  for (; opaque != 0; opaque &= opaque - 1) {
    const Shadow& one = kShadows[static_cast<std::size_t>(std::countr_zero(opaque))];
    shadow.left |= one.left;
    shadow.right |= one.right;
  }
  return shadow.left & shadow.right;
}

bool is_clear(const House& house, Cell cell, Heading heading, Places line) {
  for (; line != 0; line &= line - 1) {
    if (house.is_opaque(cell_in_view(cell, heading, std::countr_zero(line)))) return false;
  }
  return true;
}

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

void look(const House& house, Cell cell, Heading heading, int goal, std::uint8_t* codes) {
  alignas(16) std::array<std::uint8_t, kPaddedCells> view;
  const std::uint8_t* const here = house.cells.data() + cell;
  const auto& offsets = kOffsets[static_cast<std::size_t>(heading)];
  for (std::size_t i = 0; i < kViewCells; ++i) view[i] = here[offsets[i]];
  std::memset(&view[kViewCells], 0, kPaddedCells - kViewCells);
  Places opaque = 0;
  for (std::size_t i = 0; i < kWords; ++i) opaque |= high_bits(word(&view[8 * i])) << (8 * i);
  const Places hidden = hidden_by(opaque);
  for (std::size_t i = 0; i < kWords; ++i) {
    const std::uint64_t seen = word(&view[8 * i]) & kSeenBytes[hidden >> (8 * i) & 0xff];
    std::memcpy(&view[8 * i], &seen, sizeof seen);
  }
  const auto object = static_cast<std::uint8_t>(kObject + goal);
  for (std::uint8_t& each : view) each = each == object ? kGoalObject : each;
  std::memcpy(codes, view.data(), kViewCells);
}

bool sees(const House& house, Cell cell, Heading heading, int place) {
  const auto index = static_cast<std::size_t>(place);
  return is_clear(house, cell, heading, kLeftLines[index]) ||
         is_clear(house, cell, heading, kRightLines[index]);
}

Cell cell_in_view(Cell cell, Heading heading, int place) {
  return static_cast<Cell>(
      cell + kOffsets[static_cast<std::size_t>(heading)][static_cast<std::size_t>(place)]);
}

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
