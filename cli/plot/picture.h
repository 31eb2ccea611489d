// SPDX-License-Identifier: MIT
// Writes a plot as a picture file with gnuplot. plot.cpp calls it.
#pragma once

#include <string>

#include "cli/plot/gnuplot.h"

namespace dtool::cli {

/// Draws the picture into `file`. Throws UsageError if gnuplot is missing or fails, or if the file
/// cannot be written.
void write_picture(const PictureRequest& request, const std::string& file);

}  // namespace dtool::cli
