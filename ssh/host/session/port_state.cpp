// SPDX-License-Identifier: MIT
#include "ssh/host/session/port_state.h"

namespace dtool::host {

std::optional<int> PortState::admit(int place, int connection) {
  std::optional<int> old;
  if (const auto newest = newest_.find(place); newest != newest_.end()) old = newest->second;
  if (old) drop(*old);
  connections_[connection] = Connection{place};
  newest_[place] = connection;
  return old;
}

void PortState::drop(int connection) {
  const auto at = connections_.find(connection);
  if (at == connections_.end()) return;
  newest_.erase(at->second.place);
  connections_.erase(at);
}

std::vector<int> PortState::connections() const {
  std::vector<int> all;
  for (const auto& [connection, state] : connections_) all.push_back(connection);
  return all;
}

void PortState::decide(const Decision& decision) {
  decision_ = decision;
  ++decisions_;
}

Answer PortState::answer(int connection) {
  Connection& state = connections_.at(connection);
  Answer answer{state.taken};
  if (state.told != decisions_) answer.decision = decision_;
  state.told = decisions_;
  return answer;
}

}  // namespace dtool::host
