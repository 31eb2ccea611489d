// SPDX-License-Identifier: MIT
// Machine 0's side of the reports: it listens, admits the machines of the run, receives their
// reports and sends them the decisions. A new connection is a guest until it has proven that it
// knows the run's token (channel.h). Strangers get no answer, and cannot use up the machines'
// resources.
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

#include "ssh/host/channel.h"
#include "ssh/host/network.h"
#include "ssh/host/session/report.h"
#include "ssh/host/session/report_link.h"

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

/// A guest where there is no room for all.
struct GuestInLine {
  int descriptor = -1;
  std::string address;
  bool has_greeted = false;  ///< it has sent a hello
  std::uint64_t number = 0;  ///< the smaller it is the earlier it came
};

/// The guest of these that goes: the oldest of the address that has the most, and one that has sent
/// a hello last. So one machine that floods this host does not keep others away. Pure.
int choose_to_go(const std::vector<GuestInLine>& guests);

class ReportPort {
 public:
  /// Listens on all addresses; port 0: any free port. Throws std::runtime_error with the reason if
  /// that fails.
  ReportPort(std::uint16_t port, int places, std::string token, Watch& watch);
  ~ReportPort();
  ReportPort(const ReportPort&) = delete;
  ReportPort& operator=(const ReportPort&) = delete;

  std::uint16_t port() const { return port_of(listener_); }

  /// Reads from a descriptor that is ready. Ignores unknown descriptors.
  std::vector<PlacedReport> take(int descriptor, Time now);
  /// Sends this decision to each machine from now on; at once to the connected ones.
  void decide(const Decision& decision);
  /// Disconnects guests that have been here too long.
  void turn(Time now);

  std::size_t count_guests() const { return guests_.size(); }
  std::size_t count_machines() const { return machines_.size(); }

 private:
  /// A connection that has proven nothing yet, or has only sent a hello, which may be a replay.
  struct Guest {
    Wire wire;
    std::string address;
    Time since;
    std::uint64_t number;
    std::string said = {};
    std::optional<int> place = {};  ///< the guest's place, known after a hello
    std::optional<Channel> channel = {};
  };
  struct Connection {
    Wire wire;
    Channel channel;
    int place;
    std::uint64_t number;
  };

  std::vector<int> let_in(Time now);
  void make_room();
  bool is_awaited() const;
  void hear_guest(int descriptor, std::vector<PlacedReport>& reports);
  bool greet(Guest& guest);
  void hear_machine(int descriptor, std::vector<PlacedReport>& reports);
  bool take_frames(int descriptor, std::optional<std::string> body,
                   std::vector<PlacedReport>& reports);
  bool answer(int descriptor);
  void drop(int descriptor);

  Descriptor listener_;
  int places_;
  std::string token_;
  Watch& watch_;
  std::map<int, Guest> guests_;         ///< the guests by descriptor
  std::map<int, Connection> machines_;  ///< the machines' connections by descriptor
  PortState state_;                     ///< the state of the machines' connections, by descriptor
  std::uint64_t last_number_ = 0;
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
