// SPDX-License-Identifier: MIT
#include "ssh/machine/open_files.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <stdexcept>

namespace dtool::ssh {

namespace {

constexpr rlim_t kOfOurOwn = 64;
constexpr rlim_t kConnected = 2;
constexpr rlim_t kAtWork = 8;
constexpr rlim_t kWaiting = 6;  // with a dtool-host that waits for requests

rlim_t most_wanted(std::size_t hosts, std::size_t width) {
  return kOfOurOwn + (kConnected + kWaiting) * hosts + kAtWork * std::min(width, hosts);
}

}  // namespace

/// A socket stays open for each host (behind a jump host also a pair of sockets), and hosts that
/// are being served have pipes.
std::size_t make_room_for_files(std::size_t hosts, std::size_t width) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return width;
  const rlim_t wanted = most_wanted(hosts, width);
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

bool has_room_for_files(std::size_t hosts, std::size_t width) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= most_wanted(hosts, width);
}

}  // namespace dtool::ssh
