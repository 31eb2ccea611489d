// SPDX-License-Identifier: MIT
// The connection from another machine to machine 0's session. It reconnects if the connection is
// lost, sends this machine's reports, and receives the decisions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ssh/host/channel.h"
#include "ssh/host/session/link_state.h"
#include "ssh/host/session/report.h"
#include "ssh/host/session/supervision.h"
#include "ssh/host/session/watch.h"
#include "ssh/host/session/wire.h"

namespace dtool::host {

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
