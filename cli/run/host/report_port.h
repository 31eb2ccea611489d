// Machine 0's end of the reports: listens, lets in the machines of the run, takes their reports and
// tells them the decisions. Whoever connects is a guest until it has proven that it knows the run's
// token (channel.h); strangers get no answer, and cannot use up what the machines need.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/run/host/report.h"
#include "cli/run/host/watch.h"
#include "cli/run/host/wire.h"
#include "ssh/host/channel.h"
#include "ssh/host/network.h"

namespace dtool::host {

/// A report, and the place of the machine that has sent it.
struct PlacedReport {
  int place = 0;
  Report report;
};

class ReportPort {
 public:
  /// Listens at all addresses; port 0: any that is free. Throws std::runtime_error with the reason
  /// where that cannot be.
  ReportPort(std::uint16_t port, int places, std::string token, Watch& watch);
  ~ReportPort();
  ReportPort(const ReportPort&) = delete;
  ReportPort& operator=(const ReportPort&) = delete;

  std::uint16_t port() const { return port_of(listener_); }

  /// What came on a descriptor that is ready. Other people's descriptors mean nothing.
  std::vector<PlacedReport> take(int descriptor, Time now);
  /// From here on this is what each machine is told, the connected ones at once.
  void decide(const Decision& decision);
  /// Sends away guests that have been here too long.
  void turn(Time now);

  std::size_t count_guests() const { return guests_.size(); }
  std::size_t count_machines() const { return machines_.size(); }

 private:
  /// Who has not proven anything yet; or a hello alone, which may be overheard.
  struct Guest {
    Wire wire;
    std::string address;
    Time since;
    std::uint64_t number;
    std::string said = {};
    std::optional<int> place = {};  ///< after a hello
    std::optional<Channel> channel = {};
  };
  struct Connection {
    Wire wire;
    Channel channel;
    int place;
    std::uint64_t number;
    std::uint64_t taken = 0;
    std::optional<std::uint64_t> told = {};  ///< which decision
  };

  std::vector<int> let_in(Time now);
  void make_room();
  void hear_guest(int descriptor, std::vector<PlacedReport>& reports);
  bool greet(Guest& guest);
  void hear_machine(int descriptor, std::vector<PlacedReport>& reports);
  bool take_frames(Connection& connection, std::optional<std::string> body,
                   std::vector<PlacedReport>& reports);
  bool answer(Connection& connection);

  Descriptor listener_;
  int places_;
  std::string token_;
  Watch& watch_;
  std::map<int, Guest> guests_;         ///< by descriptor
  std::map<int, Connection> machines_;  ///< likewise
  std::map<int, int> descriptors_;      ///< of the machines, by place
  std::uint64_t last_number_ = 0;
  Decision decision_ = {};
  std::uint64_t decisions_ = 0;
};

}  // namespace dtool::host
