// SPDX-License-Identifier: MIT
// A house drawn as text, one character a cell, for tests of what is seen and done in it.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/objectnav/house.h"

namespace dtool::trainer {

/// `#` wall, `.` floor, `+` door, `o` low furniture, `T` tall furniture, `A` to `L` objects of
/// class 0 to 11.
inline House drawn_house(const std::vector<std::string>& rows) {
  House house;
  house.height = static_cast<int>(rows.size());
  house.width = static_cast<int>(rows.at(0).size());
  house.cells.fill(kSolid | kOpaque);
  house.room_list[0] = {1, 1, house.width - 2, house.height - 2, RoomKind::living_room};
  house.room_count = 1;
  for (int y = 0; y < house.height; ++y) {
    for (int x = 0; x < house.width; ++x) {
      const char drawn = rows.at(static_cast<std::size_t>(y)).at(static_cast<std::size_t>(x));
      const Cell cell = cell_at(x, y);
      std::uint8_t& byte = house.cells[static_cast<std::size_t>(cell)];
      if (drawn == '#') byte = kWall | kSolid | kOpaque;
      if (drawn == '.') byte = kFloor;
      if (drawn == '+') byte = kDoor;
      if (drawn == 'o') byte = kLowFurniture | kSolid;
      if (drawn == 'T') byte = kTallFurniture | kSolid | kOpaque;
      if (drawn >= 'A' && drawn <= 'L') {
        const auto kind = static_cast<std::uint8_t>(drawn - 'A');
        byte = static_cast<std::uint8_t>((kObject + kind) | kSolid);
        house.object_list[house.object_count++] = {cell, kind};
      }
      if (house.is_free(cell)) house.free_list[house.free_count++] = cell;
    }
  }
  return house;
}

}  // namespace dtool::trainer
