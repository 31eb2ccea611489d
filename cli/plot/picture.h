// A plot as a file: gnuplot is run and its picture written. plot.cpp calls it.
#pragma once

#include <string>

#include "cli/plot/gnuplot.h"

namespace dtool::cli {

/// Draws the picture into `file`. Throws UsageError if gnuplot is not here or fails, and where
/// the file cannot be written.
void write_picture(const PictureRequest& request, const std::string& file);

}  // namespace dtool::cli
