// SPDX-License-Identifier: MIT
// CSV from a text, for tests.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/data/csv.h"

namespace dtool::trainer {

/// The table in a text; `name` stands for the file in messages.
inline CsvTable parse_csv(const std::string& name, std::string text, const CsvFormat& format) {
  const auto open = [whole = std::move(text)]() -> CsvText {
    return [text = std::string_view(whole)](char* into, std::size_t size) mutable {
      const std::size_t part = text.copy(into, size);
      text.remove_prefix(part);
      return part;
    };
  };
  return {name, open, format};
}

}  // namespace dtool::trainer
