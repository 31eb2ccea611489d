// SPDX-License-Identifier: MIT
// The connection from another machine to machine 0's session. It reconnects if the connection is
// lost, sends this machine's reports, and receives the decisions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "killfiles/channel/channel.h"
#include "killfiles/channel/wire.h"
#include "ssh/host/session/report.h"
#include "ssh/host/session/supervision.h"

namespace dtool::host {

// What a machine knows of its way to machine 0's session: whether that is lost, and when to try it
// again. No socket and no clock: what happened and times come in.

/// Why there is no connection to machine 0's session.
enum class LinkFault {
  none,
  refused,   ///< nothing listens there
  unproven,  ///< something answers that does not know the run's token
  silent,
};

class LinkState {
 public:
  LinkState(const Supervision& settings, Time now);

  /// Machine 0's session has answered a report.
  void heard_answer(Time now);
  /// A connection, or the try to make one, was given up. `was_good`: it brought answers until now.
  void lost_connection(LinkFault fault, bool was_good, Time now);
  /// A new report is to be sent, and there is no connection.
  void wants_connection(Time now);
  /// Called at least once a second. Returns whether this process was frozen, or busy with ending
  /// processes: that says nothing of machine 0, so all waits begin anew.
  bool look(Time now);

  Time next_try() const { return next_try_; }
  /// Whether machine 0 has refused connections for longer than a session takes to begin.
  bool is_refused(Time now) const;
  /// A sentence, if machine 0's session cannot be reached; each sentence once.
  std::optional<std::string> take_loss(Time now);

  /// Whether a connection that has been tried since then is given up.
  bool is_late(Time since, Time now) const;
  /// Whether a connection on which machine 0 was last heard then is replaced.
  bool is_stale(Time heard, Time now) const;
  /// Whether a report is due that says that this machine lives.
  bool is_sign_due(Time sent, Time now) const { return now - sent >= beat_; }

 private:
  std::optional<std::string> find_loss(Time now) const;

  Supervision settings_;
  Time beat_;         ///< the time between signs of life
  Time stale_after_;  ///< a connection that is silent for this long is replaced
  Time next_try_;
  int failed_tries_ = 0;
  Time heard_;
  Time looked_at_;
  bool was_heard_ = false;  ///< machine 0's session was heard at any time so far
  LinkFault fault_ = LinkFault::none;
  std::optional<Time> refused_since_;
  std::optional<Time> unproven_since_;
  std::string told_loss_;
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
