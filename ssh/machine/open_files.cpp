// SPDX-License-Identifier: MIT
#include "ssh/machine/open_files.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <stdexcept>

namespace dtool::ssh {

/// A socket stays open for each host (behind a jump host also a pair of sockets), and hosts that
/// are being served have pipes.
std::size_t make_room_for_files(std::size_t hosts, std::size_t width) {
  constexpr rlim_t kOfOurOwn = 64;
  constexpr rlim_t kConnected = 2;
  constexpr rlim_t kAtWork = 8;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return width;
  const rlim_t wanted = kOfOurOwn + (kConnected + 2) * hosts + kAtWork * std::min(width, hosts);
  if (limit.rlim_cur >= wanted) return width;
  const rlim_t least = kOfOurOwn + kConnected * hosts;
  if (limit.rlim_max < least + kAtWork) {
    throw std::runtime_error(
        fmt::format("{} hosts need {} open files, and this machine allows {}\n"
                    "hint: raise the hard limit (ulimit -Hn as root, or nofile in "
                    "/etc/security/limits.conf), or name fewer hosts",
                    hosts, least + kAtWork, limit.rlim_max));
  }
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return std::min<std::size_t>(width, (limit.rlim_cur - least) / kAtWork);
}

}  // namespace dtool::ssh
