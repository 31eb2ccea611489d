// SPDX-License-Identifier: MIT
#include "ssh/host/session/report_port.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/network.h"
#include "ssh/host/process_table.h"
#include "ssh/host/session/report.h"
#include "ssh/host/versions.h"
#include "ssh/wire/message.h"
#include "ssh/wire/words.h"

namespace dtool::host {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostUnsent = kLongestAnswer;

std::vector<Descriptor> listen_at(std::uint16_t port) {
  std::vector<Descriptor> listeners;
  listeners.push_back(listen_on_held(port));
  if (!listeners.front().is_open()) throw std::runtime_error(std::strerror(errno));
  return listeners;
}

}  // namespace

ReportPort::ReportPort(std::uint16_t port, int places, std::string token, Watch& watch)
    : door_(listen_at(port),
            {.token = std::move(token),
             .longest = kLongestReport,
             // Machine 0 does not connect to itself.
             .is_expected = [places](int place) { return place > 0 && place < places; }},
            watch) {}

/// If there are no guests but no descriptors either, the machine that came first has to connect
/// again.
void ReportPort::drop_first() {
  const auto first =
      std::ranges::min_element(machines_, {}, [](const auto& each) { return each.second.number; });
  if (first != machines_.end()) drop(first->first);
}

void ReportPort::admit(Caller caller, std::vector<PlacedReport>& reports) {
  const int descriptor = caller.wire.descriptor();
  std::optional<std::string> body = std::move(caller.body);
  if (const auto old = state_.admit(caller.place, descriptor)) machines_.erase(*old);
  machines_.emplace(descriptor, std::move(caller));
  if (!take_frames(descriptor, std::move(body), reports)) drop(descriptor);
}

void ReportPort::drop(int descriptor) {
  state_.drop(descriptor);
  machines_.erase(descriptor);
}

/// Takes a frame and those after it. False if the connection is of no use any more.
bool ReportPort::take_frames(int descriptor, std::optional<std::string> body,
                             std::vector<PlacedReport>& reports) {
  Caller& connection = machines_.at(descriptor);
  try {
    for (; body; body = connection.channel.next()) {
      reports.push_back({connection.place, parse_report(*body)});
      state_.take(descriptor);
    }
  } catch (const BadMessage&) {
    return false;
  }
  return answer(descriptor);
}

bool ReportPort::answer(int descriptor) {
  Caller& connection = machines_.at(descriptor);
  const std::string bytes = to_bytes(state_.answer(descriptor));
  return connection.wire.write(connection.channel.seal(bytes), kMostUnsent);
}

void ReportPort::hear_machine(int descriptor, std::vector<PlacedReport>& reports) {
  Caller& connection = machines_.at(descriptor);
  std::string bytes;
  const Wire::Read read = connection.wire.read(bytes, std::size_t{64} << 10U);
  bool is_of_use = read != Wire::Read::closed && connection.wire.flush();
  if (is_of_use && read == Wire::Read::some) {
    connection.channel.add(bytes);
    try {
      auto body = connection.channel.next();
      if (body) is_of_use = take_frames(descriptor, std::move(body), reports);
    } catch (const BadMessage&) {
      is_of_use = false;
    }
  }
  if (!is_of_use) drop(descriptor);
}

std::vector<PlacedReport> ReportPort::take(int descriptor, Time now) {
  std::vector<PlacedReport> reports;
  if (machines_.contains(descriptor)) {
    hear_machine(descriptor, reports);
    return reports;
  }
  for (Caller& each : door_.take(descriptor, now)) admit(std::move(each), reports);
  if (door_.lacks_room()) drop_first();
  return reports;
}

void ReportPort::decide(const Decision& decision) {
  state_.decide(decision);
  for (const int each : state_.connections()) {
    if (!answer(each)) drop(each);
  }
}

namespace {

using namespace std::chrono_literals;

constexpr Time kLongestHold = 1h;
constexpr Time kBetweenChecks = 200ms;

/// The process that has started this one and the shells before it: they have one process group.
Process find_above() {
  const auto first = find_process(::getpgrp());
  return first ? find_process(first->parent).value_or(Process()) : Process();
}

void start_holder(const Descriptor& socket, const std::string& run_folder) {
  const Process above = find_above();
  if (above.pid <= 1) return;  // the connection has gone already, or nothing would tell its end
  start_detached(
      {own_path(), "hold", run_folder, std::to_string(above.pid), std::to_string(above.start)}, "/",
      socket, run_folder.substr(folder_of(run_folder).size() + 1));
}

}  // namespace

std::uint16_t hold_free_port(const std::set<std::uint16_t>& taken, const std::string& run_folder) {
  Descriptor socket;
  const std::uint16_t port = find_port([&](std::uint16_t each) {
    if (!taken.contains(each)) socket = hold_port(each);
    return socket.is_open();
  });
  assert((port != 0) == socket.is_open() && !taken.contains(port));
  if (port != 0) start_holder(socket, run_folder);
  return port;
}

int run_port_holder(const std::string& run_folder, const std::string& pid,
                    const std::string& start) {
  const auto above = parse_number<pid_t>(pid).value_or(0);
  const auto above_start = parse_number<std::uint64_t>(start).value_or(0);
  const Time end = time_since_boot() + kLongestHold;
  const auto is_awaited = [&] {
    if (above != 0) {
      const auto found = find_process(above, above_start);
      if (!found || found->is_dead()) return false;
    }
    const std::string state = run_folder + "/machine0";
    return is_folder(run_folder) && !exists(state + "/supervision") && !exists(state + "/begun");
  };
  while (is_awaited() && time_since_boot() < end) pause(kBetweenChecks);
  return 0;
}

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
