// A data set that the program draws itself: the ten digits from strokes, each bent, turned, shifted
// and blurred at random, so that a network can be trained where nothing can be downloaded.
#pragma once

#include <cstdint>

#include "trainer/data/idx.h"

namespace dtool::trainer {

/// `count` images of 28 x 28 pixels with labels 0 to 9, the same for the same `seed` on every
/// machine. Image i depends on (seed, i) only.
LabelledImages draw_digits(std::int64_t count, std::uint64_t seed);

}  // namespace dtool::trainer
