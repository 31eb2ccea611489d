// SPDX-License-Identifier: MIT
// A TCP connection for lines that never blocks; the ranks communicate over it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::trainer {

/// Closes on destruction.
class LineSocket {
 public:
  static constexpr std::size_t kLongestLine = 16384;

  /// Takes ownership of a connected socket. A peer that sends a line longer than `longest` is
  /// disconnected.
  explicit LineSocket(int descriptor, std::size_t longest = kLongestLine);
  ~LineSocket();
  LineSocket(const LineSocket&) = delete;
  LineSocket& operator=(const LineSocket&) = delete;

  int descriptor() const { return descriptor_; }

  void allow(std::size_t longest) { longest_ = longest; }

  /// Gives the socket away. No data may be pending in either direction.
  int release();

  /// Queues `line` and sends as much as possible now; the rest is sent with the next call.
  void send(std::string_view line);

  /// Whether queued data is left: call `receive` when the connection is writable.
  bool has_to_send() const { return !outgoing_.empty(); }

  /// Complete received lines; there may be more if the descriptor stays readable.
  std::vector<std::string> receive();

  /// The other side has closed, or the connection has failed. Lines that it sent before come first.
  bool has_ended() const { return has_ended_; }

 private:
  void flush();
  void take_lines(std::size_t begin, std::vector<std::string>& lines);

  int descriptor_;
  std::size_t longest_;
  std::string incoming_;
  std::string outgoing_;
  bool has_ended_ = false;
};

}  // namespace dtool::trainer
