// SPDX-License-Identifier: MIT
// An episode as text: the map with the agent's path, and the agent's view beside it.
#pragma once

#include <cstddef>
#include <string>

#include "trainer/objectnav/trace.h"

namespace dtool::trainer {

/// The state before move `step`; if `step` is the number of moves, the last state.
std::string text_picture(const Trace& trace, std::size_t step);

}  // namespace dtool::trainer
