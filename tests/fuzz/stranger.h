// SPDX-License-Identifier: MIT
// One that connects to a port of this machine and says what it likes, for the fuzz tests of what
// listens there.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtool::fuzz {

class Stranger {
 public:
  explicit Stranger(std::uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_there_ = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Stranger() {
    // A reset, so that thousands of these leave no ports behind that are taken for a minute.
    const linger at_once{1, 0};
    setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(socket_);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  /// Somebody listens.
  bool is_there() const { return is_there_; }

  void say(std::string_view bytes) const {
    [[maybe_unused]] const auto sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void say_no_more() const { shutdown(socket_, SHUT_WR); }

  /// What is there now, up to `most` bytes; sets `is_over` where it was hung up on.
  std::string hear(bool& is_over, std::size_t most = std::string::npos) const {
    std::string said(std::min<std::size_t>(65'536, most), '\0');
    const auto size = recv(socket_, said.data(), said.size(), MSG_DONTWAIT);
    is_over = size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR);
    said.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return said;
  }

  /// All until it is hung up on, or the first `most` bytes. Nothing: that takes longer than a
  /// minute.
  std::optional<std::string> hear_all(std::size_t most = std::string::npos) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    std::string said;
    for (bool is_over = false; !is_over && said.size() < most;) {
      if (std::chrono::steady_clock::now() > deadline) return std::nullopt;
      pollfd waited{socket_, POLLIN, 0};
      poll(&waited, 1, 1000);
      said += hear(is_over, most - said.size());
    }
    return said;
  }

 private:
  int socket_;
  bool is_there_ = false;
};

}  // namespace dtool::fuzz
