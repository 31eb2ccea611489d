// SPDX-License-Identifier: MIT
// Text that is kept small: compressed by zstd; for JSON in base64.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace dtool::cli {

std::string pack(std::string_view text);
/// Nothing if the bytes are damaged, or hold more than `most` bytes.
std::optional<std::string> unpack(std::string_view bytes, std::size_t most);

std::string to_base64(std::string_view bytes);
/// Nothing if the text is not base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace dtool::cli
