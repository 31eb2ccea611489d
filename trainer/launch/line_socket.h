// A TCP connection that carries lines and never blocks; what the ranks talk over.
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

  /// Takes over a connected socket. Who sends a line longer than `longest` is hung up on.
  explicit LineSocket(int descriptor, std::size_t longest = kLongestLine);
  ~LineSocket();
  LineSocket(const LineSocket&) = delete;
  LineSocket& operator=(const LineSocket&) = delete;

  int descriptor() const { return descriptor_; }

  void allow(std::size_t longest) { longest_ = longest; }

  /// Gives the socket away. Nothing may be under way in either direction.
  int release();

  /// Queues `line` and sends what the connection takes now; the rest goes with the next call.
  void send(std::string_view line);

  /// What was queued is not all sent: call `receive` when the connection takes more.
  bool has_to_send() const { return !outgoing_.empty(); }

  /// Whole lines that have come; more may be there where the descriptor stays readable.
  std::vector<std::string> receive();

  /// The other side has closed, or the connection has failed. What it sent before comes first.
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
