// A TCP connection that carries lines and never blocks; what the machines' processes talk over.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::trainer {

/// Closes on destruction.
class LineSocket {
 public:
  explicit LineSocket(int descriptor);  ///< takes over a connected socket
  ~LineSocket();
  LineSocket(const LineSocket&) = delete;
  LineSocket& operator=(const LineSocket&) = delete;

  int descriptor() const { return descriptor_; }

  /// Queues `line` and sends what the connection takes now; the rest goes with the next call.
  void send(std::string_view line);

  /// The whole lines that have come since the last call.
  std::vector<std::string> receive();

  /// The other side has closed, or the connection has failed. What it sent before comes first.
  bool has_ended() const { return has_ended_; }

  /// Nothing more will be sent; the other side reads to the end.
  void finish_sending();

 private:
  void flush();

  int descriptor_;
  std::string incoming_;
  std::string outgoing_;
  bool has_ended_ = false;
};

/// A socket that listens on `port` of all addresses. Throws std::system_error.
int listen_on(std::uint16_t port);

}  // namespace dtool::trainer
