// SPDX-License-Identifier: MIT
// The camera stands in the middle of a cell and looks along an axis of the grid, so the cells that
// a column's ray crosses, their depths and the picture's rows where floors, walls and tops begin
// are tables that the compiler makes. A ray is walked from near to far; each row of a column is
// filled once. Lengths are in units: 256 to a cell.
#include "trainer/objectnav/camera.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

namespace dtool::trainer {
namespace {

constexpr int kUnits = 256;
constexpr int kEye = 3 * kUnits / 2;
constexpr int kLowTop = 4 * kUnits / 5;
constexpr int kTallTop = 3 * kUnits;
constexpr int kLintel = 4 * kUnits;
constexpr int kCeiling = 5 * kUnits;

/// The slope of column i and of row i, in units a cell: 1.25 at the picture's edge. It is odd, so
/// that no ray meets a corner of cells.
constexpr int slope(int i) {
  return 5 * (2 * i - (kPictureSide - 1));
}

constexpr int magnitude(int value) {
  return value < 0 ? -value : value;
}

constexpr int floor_divide(int dividend, int divisor) {
  return dividend / divisor - (dividend % divisor < 0 ? 1 : 0);
}

/// The first row that shows what is lower than `height` at this depth; kPictureSide if none does.
constexpr std::uint8_t row_below(int height, int depth) {
  if (depth <= 0) return kPictureSide;
  const int least = floor_divide((kEye - height) * kUnits, 5 * depth);  // 2 row - 63 is above it
  return static_cast<std::uint8_t>(
      std::clamp(floor_divide(least + kPictureSide - 1, 2) + 1, 0, kPictureSide));
}

/// A ray's entry into a cell.
struct Entry {
  std::int8_t forward;
  std::int8_t right;
  std::uint16_t depth;
  std::uint8_t along;  ///< the place on the cell's side, in units
  bool is_side;        ///< whether that side runs in the direction of the look
  std::uint8_t floor;  ///< rows from here on show the floor nearer than `depth`
  std::uint8_t low;    ///< rows from here on are below the top of low furniture
  std::uint8_t tall;
  std::uint8_t lintel;   ///< rows before this one are above the door
  std::uint8_t ceiling;  ///< rows before this one show the ceiling nearer than `depth`
};

constexpr std::size_t kEntries = 2 * kMostSide;
using Ray = std::array<Entry, kEntries>;

constexpr Entry entry(int forward, int right, int depth, int along) {
  return {static_cast<std::int8_t>(forward),
          static_cast<std::int8_t>(right),
          static_cast<std::uint16_t>(depth),
          static_cast<std::uint8_t>(along),
          false,
          row_below(0, depth),
          row_below(kLowTop, depth),
          row_below(kTallTop, depth),
          row_below(kLintel, depth),
          row_below(kCeiling, depth)};
}

constexpr auto kRays = [] {
  std::array<Ray, kPictureSide> rays{};
  for (int column = 0; column < kPictureSide; ++column) {
    const int steep = magnitude(slope(column));
    int forward = 0, right = 0;  // cells from the camera's
    for (Entry& next : rays[static_cast<std::size_t>(column)]) {
      // The next sides are (2 forward + 1) / 2 cells ahead and (2 right + 1) / 2 cells aside.
      if ((2 * forward + 1) * steep < (2 * right + 1) * kUnits) {
        const int aside = (2 * forward + 1) * slope(column) / 2;
        const int depth = (2 * forward + 1) * kUnits / 2;
        ++forward;
        next = entry(forward, slope(column) < 0 ? -right : right, depth,
                     (aside + kUnits * (kMostSide + 1) * 2 + kUnits / 2) % kUnits);
      } else {
        const int depth = (2 * right + 1) * kUnits * kUnits / (2 * steep);
        ++right;
        next = entry(forward, slope(column) < 0 ? -right : right, depth,
                     (depth + kUnits / 2) % kUnits);
        next.is_side = true;
      }
    }
  }
  return rays;
}();

/// A pixel: red, green, blue and depth, from the lowest byte.
using Rgbd = std::uint32_t;

constexpr Rgbd colour(int red, int green, int blue) {
  return static_cast<Rgbd>(red | green << 8 | blue << 16);
}

/// With `sixteenths` of the light that is left at this depth: farther things are darker.
constexpr Rgbd lit(Rgbd what, int depth, int sixteenths = 16) {
  const auto light = static_cast<Rgbd>((kUnits - std::min(depth / 24, 150)) * sixteenths / 16);
  const Rgbd far = static_cast<Rgbd>(std::min(depth / 16, 255));
  return ((what & 0xff00ff) * light >> 8 & 0xff00ff) | ((what & 0xff00) * light >> 8 & 0xff00) |
         far << 24;
}

/// What the ray meets where it enters a cell; sides are darker.
constexpr Rgbd lit(Rgbd what, const Entry& at) {
  return lit(what, at.depth, at.is_side ? 13 : 16);
}

/// The first of these is for doors, the others for kinds of rooms.
constexpr std::size_t kGrounds = 1 + kRoomKinds;
constexpr std::array<Rgbd, kGrounds> kFloorColours = {colour(120, 96, 70), colour(196, 150, 92),
                                                      colour(208, 208, 196), colour(120, 132, 176),
                                                      colour(132, 186, 190)};
constexpr std::array<Rgbd, kGrounds> kWallPaints = {colour(170, 150, 120), colour(226, 208, 160),
                                                    colour(170, 204, 150), colour(170, 176, 226),
                                                    colour(150, 210, 214)};
constexpr Rgbd kFrame = colour(92, 58, 30);
constexpr Rgbd kLowWood = colour(214, 140, 70);
constexpr Rgbd kLowTopWood = colour(234, 178, 112);
constexpr Rgbd kTallWood = colour(110, 66, 48);
constexpr Rgbd kCeilingPaint = colour(236, 236, 232);

/// How deep a plane at this height is in a row; the planes above the eye are in the upper rows.
constexpr int depth_of_plane(int height, int row) {
  return magnitude(kEye - height) * kUnits / magnitude(slope(row));
}

using Rows = std::array<Rgbd, kPictureSide>;

constexpr Rows plane(int height, Rgbd what) {
  Rows rows{};
  for (int row = 0; row < kPictureSide; ++row) {
    rows[static_cast<std::size_t>(row)] = lit(what, depth_of_plane(height, row));
  }
  return rows;
}

constexpr Rgbd darker(Rgbd what) {
  return what - (what >> 2 & 0x3f3f3f);
}

constexpr Rows kCeilingRows = plane(kCeiling, kCeilingPaint);
constexpr Rows kLintelRows = plane(kLintel, darker(kFrame));
constexpr Rows kLowTopRows = plane(kLowTop, kLowTopWood);
/// By ground, and by 1 at the edges of a tile.
constexpr auto kFloorRows = [] {
  std::array<std::array<Rows, 2>, kGrounds> rows{};
  for (std::size_t i = 0; i < kGrounds; ++i) {
    rows[i] = {plane(0, kFloorColours[i]), plane(0, darker(kFloorColours[i]))};
  }
  return rows;
}();

/// By column: bit r is set where row r shows the edge of a floor's tile. Tiles look alike from all
/// four directions.
constexpr auto kTileEdges = [] {
  std::array<std::uint64_t, kPictureSide> edges{};
  for (int column = 0; column < kPictureSide; ++column) {
    for (int row = kPictureSide / 2; row < kPictureSide; ++row) {
      const int depth = depth_of_plane(0, row);
      if (depth > 8 * kUnits) continue;  // finer than a pixel
      const int aside = magnitude(depth * slope(column) / kUnits);
      const auto is_edge = [](int place) { return (place + kUnits / 2 + 16) % kUnits < 32; };
      if (!is_edge(depth) && !is_edge(aside)) continue;
      edges[static_cast<std::size_t>(column)] |= std::uint64_t{1} << row;
    }
  }
  return edges;
}();

/// Shapes of 8 x 8 texels, each an eighth of a cell, six classes side by side in their order. `#`
/// and `o` have the class's two colours.
constexpr int kTexels = 8;
constexpr int kSideBySide = 6;
// clang-format off
constexpr std::array<std::string_view, 2 * kTexels> kShapes = {
    "........ ........ ......## ..####.. ........ .oooooo.",
    ".##..##. ........ .....### .##o###. ........ oooooooo",
    "..####.. ....o... .....##. ###o#### ........ .######.",
    ".##oo##. ..#o##.. ....##.. oooooooo ######## .#.##.#.",
    ".#oooo#. .######. ...##... ###o#### oooooooo .######.",
    ".#oooo#. .######. ..oo.... ###o#### .######. .######.",
    ".##oo##. .######. .oo..... .##o###. ..####.. ..####..",
    "..#..#.. ..####.. oo...... ..####.. ..####.. ..####..",
    ".#.##.#. ........ ........ ..ooo... oooooooo ..o..o..",
    "######## ######## ........ .oo.o... o######o ..####..",
    ".######. #oooooo# ........ ..o..... o######o ...##...",
    "######## #oooooo# .####oo. ..##.... o######o ..####..",
    "..####.. #oooooo# .####.o. .####... o######o .######.",
    "...##... ######## .####.o. .####... oooooooo .#oooo#.",
    "..oooo.. .######. .####oo. .####... ...oo... .######.",
    "..oooo.. ######## .####... .####... .oooooo. ..####..",
};
// clang-format on

constexpr std::array<std::array<Rgbd, 2>, kObjectClasses> kShapeColours = {{
    {colour(230, 30, 120), colour(255, 255, 255)},  // alarm clock
    {colour(220, 20, 20), colour(20, 140, 20)},     // apple
    {colour(240, 220, 120), colour(20, 20, 20)},    // baseball bat
    {colour(255, 120, 0), colour(40, 20, 0)},       // basketball
    {colour(40, 90, 255), colour(255, 255, 255)},   // bowl
    {colour(110, 120, 125), colour(60, 64, 70)},    // garbage can
    {colour(20, 150, 30), colour(190, 90, 50)},     // house plant
    {colour(190, 196, 204), colour(0, 200, 255)},   // laptop
    {colour(150, 40, 200), colour(220, 150, 250)},  // mug
    {colour(0, 220, 180), colour(255, 255, 0)},     // spray bottle
    {colour(60, 80, 110), colour(10, 10, 10)},      // television
    {colour(255, 210, 0), colour(200, 0, 0)},       // vase
}};

/// Of the class that is marked; nothing else has these colours.
constexpr std::array<Rgbd, 2> kMarked = {colour(255, 0, 255), colour(255, 0, 255)};

constexpr char texel_of(int kind, int row, int column) {
  const auto line = static_cast<std::size_t>(kind / kSideBySide * kTexels + row);
  return kShapes[line][static_cast<std::size_t>(kind % kSideBySide * (kTexels + 1) + column)];
}

/// A column of the picture while it is filled from near to far.
struct Column {
  std::array<Rgbd, kPictureSide> pixels;
  std::uint64_t open;  ///< bit r is set while row r shows nothing

  /// Fills open rows from `begin` on, before `end`, with `pixel(row)`.
  template <class Choose>
  void fill(int begin, int end, const Choose& pixel) {
    if (begin >= end) return;
    const std::uint64_t before_end = end == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << end) - 1;
    std::uint64_t rows = open & before_end & ~std::uint64_t{0} << begin;
    open &= ~rows;
    for (; rows != 0; rows &= rows - 1) {
      const int row = std::countr_zero(rows);
      pixels[static_cast<std::size_t>(row)] = pixel(row);
    }
  }
  void fill_below(int row, const Rows& from) {
    fill(row, kPictureSide, [&](int at) { return from[static_cast<std::size_t>(at)]; });
  }
  void fill_above(int row, const Rows& from) {
    fill(0, row, [&](int at) { return from[static_cast<std::size_t>(at)]; });
  }
};

/// The height that a row shows at this depth.
constexpr int height_at(int row, int depth) {
  return kEye - (slope(row) * depth >> 8);
}

/// Bricks where they are near; a skirting and a rail anywhere.
void draw_wall(Column& column, const Entry& at, std::size_t ground) {
  const Rgbd face = lit(kWallPaints[ground], at);
  const Rgbd line = lit(darker(kWallPaints[ground]), at);
  const Rgbd skirting = lit(darker(darker(kWallPaints[ground])), at);
  const bool has_bricks = at.depth < 5 * kUnits;
  column.fill(0, kPictureSide, [&](int row) {
    const int height = height_at(row, at.depth);
    if (height < kUnits / 4) return skirting;
    if (height >= 2 * kUnits && height < 9 * kUnits / 4) return line;
    if (!has_bricks) return face;
    const bool is_joint = (height & 127) < 12 || ((at.along + (height & 128) / 2) & 127) < 12;
    return is_joint ? line : face;
  });
}

void draw_furniture(Column& column, const Entry& at, int top_row, Rgbd what) {
  const Rgbd face = lit(what, at);
  const Rgbd edge = lit(darker(darker(what)), at);
  const bool is_edge = at.along < 20 || at.along >= kUnits - 20;
  column.fill(top_row, kPictureSide, [&](int row) {
    return is_edge || (height_at(row, at.depth) & 127) < 14 ? edge : face;
  });
}

/// What is drawn, where, and which class is marked.
struct Shot {
  const House& house;
  Cell cell;
  Heading heading;
  int marked;
};

/// The shape stands upright in the middle of its cell and faces the camera.
void draw_object(Column& column, int x, const Entry& at, int kind, int marked) {
  const int aside = slope(x) * at.forward - at.right * kUnits + kUnits / 2;
  if (at.forward <= 0 || aside < 0 || aside >= kUnits) return;
  const int depth = at.forward * kUnits;
  const auto& colour = kind == marked ? kMarked : kShapeColours[static_cast<std::size_t>(kind)];
  const std::array<Rgbd, 2> colours = {lit(colour[0], depth), lit(colour[1], depth)};
  std::uint64_t holes = 0;
  const std::uint64_t before = column.open;
  column.fill(row_below(kUnits, depth), row_below(0, depth), [&](int row) {
    const int height = std::clamp(height_at(row, depth), 0, kUnits - 1);
    const char texel =
        texel_of(kind, kTexels - 1 - height * kTexels / kUnits, aside * kTexels / kUnits);
    if (texel == '.') holes |= std::uint64_t{1} << row;
    return colours[texel == 'o' ? 1 : 0];
  });
  column.open |= holes & before;
}

/// The kind of ground of a cell's code; `before` where it stands on the ground of the cell before.
std::size_t ground_of(std::uint8_t seen, std::size_t before) {
  if (seen == kDoor) return 0;
  return seen >= kFloor && seen < kFloor + kRoomKinds ? 1 + static_cast<std::size_t>(seen - kFloor)
                                                      : before;
}

void fill_ground(Column& column, int x, const Entry& end, std::size_t ground) {
  const std::uint64_t edges = kTileEdges[static_cast<std::size_t>(x)];
  column.fill(end.floor, kPictureSide, [&](int row) {
    return kFloorRows[ground][edges >> row & 1][static_cast<std::size_t>(row)];
  });
}

/// Draws what the ray meets in a cell, from its entry to its end, which is the next entry.
void draw_cell(Column& column, int x, std::uint8_t seen, int marked, std::size_t ground,
               const Entry& at, const Entry& end) {
  if (seen == kTallFurniture) {
    draw_furniture(column, at, at.tall, kTallWood);
  } else if (seen == kLowFurniture) {
    draw_furniture(column, at, at.low, kLowWood);
    column.fill_below(end.low, kLowTopRows);
  } else if (seen == kDoor) {
    const Rgbd frame = lit(kFrame, at);
    const bool is_post = at.along < 28 || at.along >= kUnits - 28;
    column.fill(0, is_post ? kPictureSide : at.lintel, [&](int) { return frame; });
    column.fill_above(end.lintel, kLintelRows);
  } else if (seen >= kObject) {
    draw_object(column, x, at, seen - kObject, marked);
  }
  fill_ground(column, x, end, ground);
  column.fill_above(end.ceiling, kCeilingRows);
}

void draw_column(const Shot& shot, int x, Column& column) {
  const auto& [house, cell, heading, marked] = shot;
  column.open = ~std::uint64_t{0};
  const Ray& ray = kRays[static_cast<std::size_t>(x)];
  const Cell ahead = kAhead[static_cast<std::size_t>(heading)];
  const Cell right = kAhead[static_cast<std::size_t>(turned(heading, 1))];
  std::size_t ground = ground_of(house.seen(cell), 0);
  if (house.seen(cell) == kDoor) column.fill_above(ray[0].lintel, kLintelRows);
  fill_ground(column, x, ray[0], ground);
  column.fill_above(ray[0].ceiling, kCeilingRows);
  for (std::size_t i = 0; i + 1 < kEntries && column.open != 0; ++i) {
    const std::uint8_t seen = house.seen(cell + ray[i].forward * ahead + ray[i].right * right);
    if (seen == kWall || seen == kHidden) return draw_wall(column, ray[i], ground);
    ground = ground_of(seen, ground);
    draw_cell(column, x, seen, marked, ground, ray[i], ray[i + 1]);
  }
  column.fill(0, kPictureSide, [](int) { return Rgbd{0xff000000}; });
}

}  // namespace

void take_picture(const House& house, Cell cell, Heading heading, int marked,
                  std::uint8_t* picture) {
  constexpr int kPlane = kPictureSide * kPictureSide;
  Column column;
  for (int x = 0; x < kPictureSide; ++x) {
    draw_column({house, cell, heading, marked}, x, column);
    std::uint8_t* next = picture + x;
    for (const Rgbd pixel : column.pixels) {
      next[0] = static_cast<std::uint8_t>(pixel);
      next[kPlane] = static_cast<std::uint8_t>(pixel >> 8);
      next[2 * kPlane] = static_cast<std::uint8_t>(pixel >> 16);
      next[3 * kPlane] = static_cast<std::uint8_t>(pixel >> 24);
      next += kPictureSide;
    }
  }
}

}  // namespace dtool::trainer
