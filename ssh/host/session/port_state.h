// SPDX-License-Identifier: MIT
// What machine 0 knows of the machines' connections: which one of each machine counts, how many
// reports came on it, and which decision it was told. No socket and no clock: the caller gives
// connections numbers, which may be used again once they are dropped.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ssh/host/session/report.h"

namespace dtool::host {

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

}  // namespace dtool::host
