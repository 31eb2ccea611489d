// SPDX-License-Identifier: MIT
// Text that is kept small: compressed by zstd.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace dtool::cli {

std::string pack(std::string_view text);
/// Nothing if the bytes are damaged, or hold more than `most` bytes.
std::optional<std::string> unpack(std::string_view bytes, std::size_t most);

}  // namespace dtool::cli
