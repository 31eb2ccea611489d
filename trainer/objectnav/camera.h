// SPDX-License-Identifier: MIT
// What an agent's camera sees: a first-person picture with depth, cast ray by ray through the
// house's grid. Samplers write it as an observation, rollouts show it.
#pragma once

#include <cstdint>

#include "trainer/objectnav/house.h"

namespace dtool::trainer {

/// A picture is `uint8[kPicturePlanes][kPictureSide][kPictureSide]`: the planes are red, green,
/// blue and depth, then come rows from the top, then columns from the left. Depths are sixteenths
/// of a cell along the direction of the look, 255 at most: 8 m.
inline constexpr int kPictureSide = 64;
inline constexpr int kPicturePlanes = 4;
inline constexpr int kPictureBytes = kPicturePlanes * kPictureSide * kPictureSide;

/// No class, for `marked`.
inline constexpr int kNoClass = -1;

/// Takes the picture from the middle of `cell` in the direction `heading` (that of the look, not of
/// the body), with the camera 0.75 m above the floor and an angle of view of 103 degrees both ways.
/// Walls are 2.5 m high and painted by the room in front of them, doors are 2 m high and have a
/// frame. Tall furniture hides what is behind it; low furniture and objects are seen over. Each
/// class of objects has a shape and colours; those of the class `marked` are magenta. Integers
/// only: the same bytes on every machine. Allocates nothing.
void take_picture(const House& house, Cell cell, Heading heading, int marked,
                  std::uint8_t* picture);

}  // namespace dtool::trainer
