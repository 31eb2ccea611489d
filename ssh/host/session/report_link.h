// SPDX-License-Identifier: MIT
// The connection from another machine to machine 0's session. It reconnects if the connection is
// lost, sends this machine's reports, and receives the decisions.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/host/channel.h"
#include "ssh/host/files.h"
#include "ssh/host/session/link_state.h"
#include "ssh/host/session/report.h"
#include "ssh/host/session/supervision.h"

namespace dtool::host {

// Waits until one of many descriptors can be read or written. A session has one, for its script and
// all its connections.

/// The event to wait for.
enum class Until { readable, readable_or_writable };

class Watch {
 public:
  /// Throws std::runtime_error.
  Watch();

  void add(int descriptor);
  void wait_until(int descriptor, Until until);
  /// Call it before the descriptor is closed: a child before its exec still has a copy of it.
  void remove(int descriptor);

  /// The descriptors that are ready, closed or broken. None after `patience` or after a signal. The
  /// signals of `mask` are blocked meanwhile.
  std::vector<int> wait(Time patience, const sigset_t& mask);

 private:
  Descriptor epoll_;
};

// A session's socket with the bytes that are still to be written. No call waits.

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

class ReportLink {
 public:
  ReportLink(const Supervision& settings, std::string token, Watch& watch, Time now);

  /// Sends this report from now on: at once, and again as a sign of life.
  void tell(const Report& report, Time now);
  /// Whether machine 0's session has received the newest report.
  bool is_told() const;
  /// Whether machine 0 has refused connections for longer than a session takes to begin.
  bool is_refused(Time now) const { return state_.is_refused(now); }

  /// Reads from a descriptor that is ready. Returns a decision if it is new on this connection.
  /// Ignores unknown descriptors.
  std::optional<Decision> take(int descriptor, Time now);
  /// Connects, gives up, sends signs of life. Called at least once a second. Returns a sentence if
  /// machine 0's session cannot be reached; each sentence once.
  std::optional<std::string> turn(Time now);
  /// How long from `now` until it would connect again; none if it has a connection.
  std::optional<Time> time_to_next_try(Time now) const;

 private:
  struct Connection {
    Wire wire;
    Time since;
    std::string hello = {};  ///< empty: not connected yet
    std::string welcome = {};
    std::optional<Channel> channel = {};
    Time heard{};
    Time sent{};
    std::uint64_t sent_reports = 0;
    std::uint64_t taken_reports = 0;
  };

  void connect(Time now);
  void greet(Time now);
  void lose(LinkFault fault, Time now);
  std::optional<Decision> hear(Time now);
  void send_report(Time now);

  Supervision settings_;
  std::string token_;
  Watch& watch_;
  LinkState state_;
  std::optional<Connection> connection_;
  std::optional<Report> report_;
  bool is_new_ = false;  ///< the report was not sent on this connection yet
};

}  // namespace dtool::host
