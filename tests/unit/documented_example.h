// SPDX-License-Identifier: MIT
// Examples of the documentation, which tests read so that they stay true.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

#include "tests/unit/temporary_folder.h"

namespace dtool::tests {

/// The first ```toml block of a page of the documentation.
inline std::string example_in(const std::string& page) {
  const std::string text = read_text(std::filesystem::path(DTOOL_SOURCE_DIR) / "docs" / page);
  const std::string fence = "```toml\n";
  const std::size_t begin = text.find(fence);
  if (begin == std::string::npos) throw std::runtime_error(page + " has no ```toml block");
  const std::size_t end = text.find("\n```", begin);
  return text.substr(begin + fence.size(), end + 1 - begin - fence.size());
}

}  // namespace dtool::tests
