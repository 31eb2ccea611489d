// SPDX-License-Identifier: MIT
// The replies of dtool-host in the results of tasks.
#pragma once

#include <optional>
#include <string_view>

#include "ssh/remote.h"

namespace dtool::tree_sync {

/// The reply in the output of a host, behind its TreeNews.
inline std::string_view last_frame(std::string_view out) {
  constexpr std::size_t kHead = 6;
  for (;;) {
    const std::size_t size = kHead + host::read_number_bytes(out.substr(0, 4));
    if (out.size() <= size) return out;
    out.remove_prefix(size);
  }
}

/// The only reply in a result. Nothing if the host failed; then `result` gets its error and hint.
template <typename Reply>
std::optional<Reply> reply_in(ssh::HostResult& result) {
  if (result.failure != ssh::Failure::none) return std::nullopt;
  try {
    return ssh::read_reply<Reply>(result);
  } catch (const host::BadMessage& error) {
    result.exit_code = 1;
    result.error = error.what();
    result.hint = error.hint();
    return std::nullopt;
  }
}

}  // namespace dtool::tree_sync
