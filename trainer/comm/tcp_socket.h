// SPDX-License-Identifier: MIT
// Blocking TCP for the few messages that link the ranks; each step has a deadline.
#pragma once

#include <chrono>
#include <cstddef>

namespace dtool::trainer {

using Deadline = std::chrono::steady_clock::time_point;

/// Owns a socket. All functions throw std::runtime_error on an error and when the deadline passes.
class TcpSocket {
 public:
  /// Takes ownership of a connected, non-blocking socket.
  explicit TcpSocket(int descriptor);

  ~TcpSocket();
  TcpSocket(TcpSocket&& other) noexcept;
  TcpSocket& operator=(TcpSocket&& other) noexcept;

  void send_all(const void* data, std::size_t size, Deadline deadline) const;
  void receive_all(void* data, std::size_t size, Deadline deadline) const;

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace dtool::trainer
