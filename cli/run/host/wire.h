// A socket of a session with what is still to be written to it. No call waits.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cli/run/host/watch.h"
#include "ssh/host/files.h"

namespace dtool::host {

class Wire {
 public:
  /// Takes a socket over and waits until it can be read. Throws std::runtime_error.
  Wire(Descriptor socket, Watch& watch);
  Wire(Wire&&) noexcept = default;
  ~Wire();
  Wire& operator=(Wire&&) = delete;

  int descriptor() const { return socket_.get(); }
  void wait_until(Until until) { watch_->wait_until(socket_.get(), until); }

  enum class Read { some, nothing_yet, closed };
  /// Appends what has come, at most `most` bytes.
  Read read(std::string& bytes, std::size_t most);

  /// Writes what can be written, and keeps the rest. False if the connection is broken, or the
  /// other end takes nothing and more than `most` bytes wait.
  bool write(std::string_view bytes, std::size_t most);
  /// Goes on with the rest.
  bool flush();

 private:
  Descriptor socket_;
  Watch* watch_;
  std::string unsent_;
};

}  // namespace dtool::host
