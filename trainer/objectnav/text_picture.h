// An episode as text: the map with the agent's path, and beside it what the agent sees.
#pragma once

#include <cstddef>
#include <string>

#include "trainer/objectnav/trace.h"

namespace dtool::trainer {

/// The state before move `step`, or with as many steps as there were moves, the last one.
std::string text_picture(const Trace& trace, std::size_t step);

}  // namespace dtool::trainer
