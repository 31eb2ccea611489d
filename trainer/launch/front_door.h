// SPDX-License-Identifier: MIT
// Where a process of a run listens for the others. A new connection is a stranger until it proves
// that it belongs to the run (greeting.h). A stranger gets no answer, may send one line within some
// seconds, and is replaced by the next one if too many wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/launch/greeting.h"
#include "trainer/settings/endpoint.h"

namespace dtool::trainer {

// A TCP connection for lines that never blocks; the ranks communicate over it.

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

/// Sockets that listen on the addresses of `endpoint`. They listen on all addresses if the
/// endpoint's address belongs to another machine, or is a name that only this machine takes for
/// itself. Throws std::system_error, or std::runtime_error if the name has no address.
std::vector<int> listen_at(const Endpoint& endpoint);

/// A connection that has proven itself, and waits for its welcome.
class Guest {
 public:
  Guest(std::unique_ptr<LineSocket> socket, Greeting greeting, std::string words)
      : socket_(std::move(socket)), greeting_(std::move(greeting)), words_(std::move(words)) {}

  const std::string& words() const { return words_; }

  /// The connection for further use by the other side.
  std::unique_ptr<LineSocket> welcome(std::string_view words);

 private:
  std::unique_ptr<LineSocket> socket_;
  Greeting greeting_;
  std::string words_;
};

class FrontDoor {
 public:
  /// `guests`: how many may come at the same moment. Throws as listen_at does.
  FrontDoor(const Endpoint& endpoint, std::string name, std::size_t guests,
            const RunToken& token = own_run_token());
  ~FrontDoor();
  FrontDoor(const FrontDoor&) = delete;
  FrontDoor& operator=(const FrontDoor&) = delete;

  std::uint16_t port() const;

  /// Readable when `take` has work.
  int descriptor() const { return watched_; }

  /// Never waits. Call it when `descriptor` is readable.
  std::vector<Guest> take();

 private:
  struct Visitor;
  void admit(std::vector<Guest>& guests);
  void make_room();
  bool advance(Visitor& visitor, std::vector<Guest>& guests);

  const RunToken* token_;
  std::string name_;
  std::size_t most_;
  int watched_ = -1;  ///< epoll
  std::vector<int> listeners_;
  std::vector<std::unique_ptr<Visitor>> visitors_;
};

}  // namespace dtool::trainer
