// SPDX-License-Identifier: MIT
// Machine 0's side of the reports: it listens, admits the machines of the run, receives their
// reports and sends them the decisions.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "killfiles/channel/door.h"
#include "ssh/host/session/report.h"

namespace dtool::host {

// What machine 0 knows of the machines' connections: which one of each machine counts, how many
// reports came on it, and which decision it was told. No socket and no clock: the caller gives
// connections numbers, which may be used again once they are dropped.

class PortState {
 public:
  /// The machine there has proven itself on that connection, which counts from now on. Returns the
  /// one that counted before, and is of no use any more.
  std::optional<int> admit(int place, int connection);
  void drop(int connection);
  bool counts(int connection) const { return connections_.contains(connection); }
  std::vector<int> connections() const;

  /// A report has come on that connection.
  void take(int connection) { ++connections_.at(connection).taken; }
  /// From now on each connection is told this decision, once.
  void decide(const Decision& decision);
  /// What is to be sent on that connection now.
  Answer answer(int connection);

 private:
  struct Connection {
    int place;
    std::uint64_t taken = 0;
    std::optional<std::uint64_t> told = {};  ///< number of the decision
  };

  std::map<int, Connection> connections_;
  std::map<int, int> newest_;  ///< connections, by place
  Decision decision_;
  std::uint64_t decisions_ = 0;
};

/// A report, and the place of the machine that sent it.
struct PlacedReport {
  int place = 0;
  Report report;
};

class ReportPort {
 public:
  /// Listens on all addresses; port 0: any free port. Throws std::runtime_error with the reason if
  /// that fails.
  ReportPort(std::uint16_t port, int places, std::string token, Watch& watch);

  std::uint16_t port() const { return door_.port(); }

  /// Reads from a descriptor that is ready. Ignores unknown descriptors.
  std::vector<PlacedReport> take(int descriptor, Time now);
  /// Sends this decision to each machine from now on; at once to the connected ones.
  void decide(const Decision& decision);
  /// Disconnects guests that have been here too long.
  void turn(Time now) { door_.turn(now); }

  std::size_t count_guests() const { return door_.count_guests(); }
  std::size_t count_machines() const { return machines_.size(); }

 private:
  void drop_first();
  void admit(Caller caller, std::vector<PlacedReport>& reports);
  void hear_machine(int descriptor, std::vector<PlacedReport>& reports);
  bool take_frames(int descriptor, std::optional<std::string> body,
                   std::vector<PlacedReport>& reports);
  bool answer(int descriptor);
  void drop(int descriptor);

  Door door_;
  std::map<int, Caller> machines_;  ///< the machines' connections by descriptor
  PortState state_;                 ///< the state of the machines' connections, by descriptor
};

// Holds the port at which machine 0's session will listen, from the check of the hosts until the
// session has it: a process that binds the port and does not listen.

/// A port that is free and not in `taken`, and a process that holds it for the run of that folder.
/// If no process can be made, the port is only free. 0: no port could be taken.
std::uint16_t hold_free_port(const std::set<std::uint16_t>& taken, const std::string& run_folder);

/// The main function of that process, which has the port's socket as its standard input. It ends
/// when the session has tried to listen, when the run's folder is gone, when the process above ends
/// (its pid and start: sshd, or a dtool on this host), and after an hour.
int run_port_holder(const std::string& run_folder, const std::string& pid,
                    const std::string& start);

}  // namespace dtool::host
