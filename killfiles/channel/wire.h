// SPDX-License-Identifier: MIT
// Descriptors: an owner, all bytes to and from one, how one thread waits for many of them, and the
// sockets between the processes of a run.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtool::host {

/// A descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this == &other) return *this;
    reset();
    number_ = other.release();
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const { return number_; }
  bool is_open() const { return number_ != -1; }
  explicit operator bool() const { return is_open(); }
  int release() { return std::exchange(number_, -1); }
  void reset() {
    if (is_open()) ::close(release());
  }

 private:
  int number_ = -1;
};

/// `what: No such file or directory`, by errno.
inline std::string with_reason(const std::string& what) {
  return what + ": " + std::strerror(errno);
}

/// What is left to read, at most so many bytes. Nothing, and errno, if it cannot be read.
inline std::optional<std::string> read_to_end(int descriptor, std::size_t most) {
  std::string text;
  std::array<char, 16384> piece;  // a log-in may have a stack of 64 kB
  while (text.size() < most) {
    const ssize_t size =
        ::read(descriptor, piece.data(), std::min(piece.size(), most - text.size()));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return std::nullopt;
    if (size == 0) break;
    text.append(piece.data(), static_cast<std::size_t>(size));
  }
  return text;
}

/// False, and errno, if it cannot all be written.
inline bool write_to_end(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(descriptor, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

/// The event to wait for.
enum class Until { readable, readable_or_writable };

/// Waits until one of many descriptors can be read or written.
class Watch {
 public:
  /// Throws std::runtime_error.
  Watch();

  void add(int descriptor);
  void wait_until(int descriptor, Until until);
  /// Call it before the descriptor is closed: a child before its exec still has a copy of it.
  void remove(int descriptor);

  /// The descriptors that are ready, closed or broken. None after `patience` or after a signal. The
  /// signals of `mask` are blocked meanwhile; without one, those that this thread blocks.
  std::vector<int> wait(std::chrono::milliseconds patience, const sigset_t* mask = nullptr) const;
  std::vector<int> wait(std::chrono::milliseconds patience, const sigset_t& mask) const {
    return wait(patience, &mask);
  }

  /// Can be read while any of the descriptors is ready.
  int descriptor() const { return epoll_.get(); }

 private:
  Descriptor epoll_;
};

/// A socket with the bytes that are still to be written. No call waits.
class Wire {
 public:
  /// Takes ownership of a socket and watches it for reading. Throws std::runtime_error.
  Wire(Descriptor socket, Watch& watch);
  Wire(Wire&&) noexcept = default;
  ~Wire();
  Wire& operator=(Wire&&) = delete;

  int descriptor() const { return socket_.get(); }
  /// Gives the socket away; no bytes may be waiting.
  Descriptor release();
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
