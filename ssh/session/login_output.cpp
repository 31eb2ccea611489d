// SPDX-License-Identifier: MIT
#include "ssh/session/login_output.h"

#include <fmt/format.h>

#include <algorithm>

namespace dtool::ssh {
namespace {

constexpr std::string_view kBeginMark = "dtool-command-begins\n";

}  // namespace

std::string behind_mark(std::string_view line) {
  return fmt::format("printf 'dtool-command-begins\\n' && {}", line);
}

std::string_view LoginOutput::commands_part(std::string_view bytes) {
  if (has_begun_) return bytes;
  held_ += bytes;
  const std::size_t at = held_.find(kBeginMark);
  if (at == held_.npos) {
    held_.erase(0, held_.size() - std::min(held_.size(), kBeginMark.size() - 1));
    return {};
  }
  has_begun_ = true;
  return std::string_view(held_).substr(at + kBeginMark.size());
}

}  // namespace dtool::ssh
