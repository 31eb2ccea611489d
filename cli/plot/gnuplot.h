// A plot as a picture: the script with which gnuplot draws it. picture.cpp runs gnuplot.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/plot/panel.h"

namespace dtool::cli {

enum class Picture { svg, png };

/// What a picture is drawn from. `names`: the runs', as the legend has them.
struct PictureRequest {
  Picture kind = Picture::svg;
  std::size_t width = 1200;  ///< pixels
  std::size_t height = 800;
  std::vector<std::string> names;
  std::vector<Panel> panels;
};

/// The script; gnuplot writes the picture to its standard output. Curves are thinned to what the
/// picture can show. Names may hold any character.
std::string gnuplot_script(const PictureRequest& request);

}  // namespace dtool::cli
