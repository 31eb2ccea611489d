// SPDX-License-Identifier: MIT
// A data set that the program draws itself: the ten digits as strokes, each bent, turned, shifted
// and blurred at random. With it a network can be trained without any download.
#pragma once

#include <cstdint>
#include <memory_resource>

#include "trainer/data/idx.h"

namespace dtool::trainer {

/// `count` images of 28 x 28 pixels with labels 0 to 9. The same `seed` gives the same images on
/// every machine. Image i depends only on (seed, i). The images' memory comes from `memory`.
LabelledImages draw_digits(std::int64_t count, std::uint64_t seed,
                           std::pmr::memory_resource* memory = std::pmr::get_default_resource());

}  // namespace dtool::trainer
