// SPDX-License-Identifier: MIT
// Bytes as text: base64 (RFC 4648), padded.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dtool::ssh {

std::string to_base64(std::string_view bytes);
/// Nothing if the text is not base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace dtool::ssh
