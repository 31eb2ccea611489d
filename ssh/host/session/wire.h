// SPDX-License-Identifier: MIT
// A session's socket with the bytes that are still to be written. No call waits.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "ssh/host/files.h"
#include "ssh/host/session/watch.h"

namespace dtool::host {

class Wire {
 public:
  /// Takes ownership of a socket and watches it for reading. Throws std::runtime_error.
  Wire(Descriptor socket, Watch& watch);
  Wire(Wire&&) noexcept = default;
  ~Wire();
  Wire& operator=(Wire&&) = delete;

  int descriptor() const { return socket_.get(); }
  void wait_until(Until until) { watch_->wait_until(socket_.get(), until); }

  enum class Read { some, nothing_yet, closed };
  /// Appends the bytes that have come, at most `most`.
  Read read(std::string& bytes, std::size_t most);

  /// Writes as much as possible, and keeps the rest. False if the connection is broken, or if the
  /// other end reads nothing and more than `most` bytes wait.
  bool write(std::string_view bytes, std::size_t most);
  /// Writes more of the rest.
  bool flush();

 private:
  Descriptor socket_;
  Watch* watch_;
  std::string unsent_;
};

}  // namespace dtool::host
