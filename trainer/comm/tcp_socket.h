// Blocking TCP for the few messages by which ranks are linked, each step with a deadline.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "trainer/launch/endpoint.h"

namespace dtool::trainer {

using Deadline = std::chrono::steady_clock::time_point;

/// Owns a socket. All functions throw std::runtime_error, and when the deadline passes.
class TcpSocket {
 public:
  /// Listens on a free port of `address`, numeric.
  static TcpSocket listen_on(const std::string& address);
  static TcpSocket connect_to(const Endpoint& endpoint, Deadline deadline);

  ~TcpSocket();
  TcpSocket(TcpSocket&& other) noexcept;
  TcpSocket& operator=(TcpSocket&& other) noexcept;

  /// Of a listening socket: the next connection.
  TcpSocket accept(Deadline deadline) const;
  std::uint16_t port() const;

  void send_all(const void* data, std::size_t size, Deadline deadline) const;
  void receive_all(void* data, std::size_t size, Deadline deadline) const;

  int descriptor() const { return descriptor_; }

 private:
  explicit TcpSocket(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

}  // namespace dtool::trainer
