// SPDX-License-Identifier: MIT
// Uses a socket filter that lets nothing through: it needs no privileges and leaves the library's
// descriptor alone. Shutting the listener down would make the library's event loop spin.
#include "trainer/ranks/closed_listeners.h"

#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <charconv>
#include <filesystem>
#include <string>

namespace dtool::trainer {
namespace {

int option(int descriptor, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  return getsockopt(descriptor, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

bool listens_for_tcp(int descriptor) {
  const int domain = option(descriptor, SO_DOMAIN);
  return option(descriptor, SO_ACCEPTCONN) == 1 && (domain == AF_INET || domain == AF_INET6);
}

}  // namespace

std::set<int> listening_sockets() {
  std::set<int> found;
  std::error_code problem;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd", problem)) {
    const std::string name = each.path().filename();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (descriptor >= 0 && listens_for_tcp(descriptor)) found.insert(descriptor);
  }
  return found;
}

void take_no_more(int listening_socket) {
  sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program{1, &nothing};
  setsockopt(listening_socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

}  // namespace dtool::trainer
