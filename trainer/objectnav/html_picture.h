// SPDX-License-Identifier: MIT
// An episode as one self-contained page: its map, and beside it what the camera sees in each step,
// which a small script plays. `dtool-trainer rollout --format html` writes it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "trainer/objectnav/episode.h"

namespace dtool::trainer {

/// The whole file. Its pictures are PNGs of the camera's colours, with the depths to their right.
std::string html_picture(const Trace& trace);

/// A PNG file of `rows` rows with `columns` pixels of red, green and blue
/// (https://www.w3.org/TR/png/).
std::string png_of(std::span<const std::uint8_t> pixels, int rows, int columns);

}  // namespace dtool::trainer
