// Panels drawn with characters: curves in braille, 2 by 4 dots a character, axes with numbers.
// plot.cpp prints them.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/plot/panel.h"

namespace dtool::cli {

/// `text` in the colour of a run, as far as the terminal takes colours.
using PaintRun = std::function<std::string(std::size_t run, std::string_view text)>;

/// Below these a panel cannot be read.
inline constexpr std::size_t kLeastColumns = 24;
inline constexpr std::size_t kLeastRows = 6;

/// `rows` lines, each `columns` characters wide as the terminal shows it. Where the panel has
/// several curves, each bears its run's number, from 1, so that it is known without colours.
std::vector<std::string> draw_chart(const Panel& panel, std::size_t columns, std::size_t rows,
                                    const PaintRun& paint);

/// All panels within `columns` and `rows`, as far as kLeastRows lets them be; three and more stand
/// two beside each other where there is room.
std::vector<std::string> draw_charts(const std::vector<Panel>& panels, std::size_t columns,
                                     std::size_t rows, const PaintRun& paint);

}  // namespace dtool::cli
