// SPDX-License-Identifier: MIT
// Writes a plot as a picture file with gnuplot. plot.cpp calls it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/plot/panel.h"

namespace dtool::cli {

// A plot as a picture: the script for gnuplot. picture.cpp runs gnuplot.

enum class Picture { svg, png, pdf };

/// The data of a picture. `names`: the runs' names in the legend.
struct PictureRequest {
  Picture kind = Picture::svg;
  std::size_t width = 1200;  ///< pixels, of which a PDF has 96 to an inch
  std::size_t height = 800;
  std::vector<std::string> names;
  std::vector<Panel> panels;
};

/// The script; it makes gnuplot write the picture to standard output. Curves are thinned to the
/// picture's resolution. Names may hold any character.
std::string gnuplot_script(const PictureRequest& request);

/// Draws the picture into `file`. Throws UsageError if gnuplot is missing or fails, or if the file
/// cannot be written.
void write_picture(const PictureRequest& request, const std::string& file);

}  // namespace dtool::cli
