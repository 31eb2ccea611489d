// SPDX-License-Identifier: MIT
#include "ssh/host/session/report_port.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <tuple>

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

constexpr std::size_t kMostGuests = 256;
constexpr Time kPatienceWithGuests = 5s;
constexpr int kMostAtOnce = 64;  // so that known machines are served in between
constexpr std::size_t kMostOfGuest = 4096;
constexpr std::size_t kMostUnsent = kLongestAnswer;

}  // namespace

int choose_to_go(const std::vector<GuestInLine>& guests) {
  std::map<std::string, int> counts;
  for (const GuestInLine& each : guests) ++counts[each.address];
  const auto order = [&counts](const GuestInLine& each) {
    return std::tuple(-counts[each.address], each.has_greeted, each.number);
  };
  return std::ranges::min_element(guests, {}, order)->descriptor;
}

ReportPort::ReportPort(std::uint16_t port, int places, std::string token, Watch& watch)
    : listener_(listen_on_held(port)), places_(places), token_(std::move(token)), watch_(watch) {
  if (!listener_.is_open()) throw std::runtime_error(std::strerror(errno));
  watch_.add(listener_.get());
}

ReportPort::~ReportPort() {
  watch_.remove(listener_.get());
}

/// If there are no guests but no descriptors either, the machine that came first has to connect
/// again.
void ReportPort::make_room() {
  if (guests_.empty()) {
    const auto first = std::ranges::min_element(
        machines_, {}, [](const auto& each) { return each.second.number; });
    if (first != machines_.end()) drop(first->first);
    return;
  }
  std::vector<GuestInLine> line;
  for (const auto& [descriptor, guest] : guests_)
    line.push_back({descriptor, guest.address, guest.place.has_value(), guest.number});
  guests_.erase(choose_to_go(line));
}

/// Whether somebody waits to be let in.
bool ReportPort::is_awaited() const {
  pollfd listener{listener_.get(), POLLIN, 0};
  return ::poll(&listener, 1, 0) == 1;
}

std::vector<int> ReportPort::let_in(Time now) {
  std::vector<int> come;
  for (int i = 0; i < kMostAtOnce; ++i) {
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    Descriptor socket(::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&name), &size,
                                SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) {
      // accept4() wants a descriptor before it looks whether anyone is there.
      const bool has_none_left = errno == EMFILE || errno == ENFILE;
      if (has_none_left && is_awaited()) make_room();
      break;
    }
    if (guests_.size() >= kMostGuests) make_room();
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const int descriptor = socket.get();
    guests_.emplace(descriptor,
                    Guest{Wire(std::move(socket), watch_), address_in(name), now, ++last_number_});
    come.push_back(descriptor);
  }
  return come;
}

/// Answers a hello. False if it is none.
bool ReportPort::greet(Guest& guest) {
  const std::string hello = guest.said.substr(0, kHelloSize);
  guest.place = read_hello(token_, hello);
  // Machine 0 does not connect to itself.
  if (!guest.place || *guest.place == 0 || *guest.place >= places_) return false;
  const std::string welcome = make_welcome(token_, hello);
  guest.channel.emplace(token_, hello, welcome, End::coordinator, kLongestReport);
  guest.channel->add(std::string_view(guest.said).substr(kHelloSize));
  return guest.wire.write(welcome, kMostUnsent);
}

void ReportPort::hear_guest(int descriptor, std::vector<PlacedReport>& reports) {
  const auto at = guests_.find(descriptor);
  Guest& guest = at->second;
  std::string bytes;
  const Wire::Read read = guest.wire.read(bytes, kMostOfGuest - guest.said.size());
  if (read == Wire::Read::nothing_yet && guest.wire.flush()) return;
  guest.said += bytes;
  bool is_welcome =
      read == Wire::Read::some && may_be_hello(guest.said) && guest.said.size() < kMostOfGuest;
  if (guest.channel) {
    guest.channel->add(bytes);
  } else if (is_welcome && guest.said.size() >= kHelloSize) {
    is_welcome = greet(guest);
  }
  std::optional<std::string> body;
  try {
    if (guest.channel) body = guest.channel->next();
  } catch (const BadMessage&) {
    is_welcome = false;
  }
  if (!is_welcome) guests_.erase(at);
  if (!is_welcome || !body) return;
  // Proven.
  if (const auto old = state_.admit(*guest.place, descriptor)) machines_.erase(*old);
  machines_.emplace(descriptor, Connection{std::move(guest.wire), *std::move(guest.channel),
                                           *guest.place, guest.number});
  guests_.erase(at);
  if (!take_frames(descriptor, std::move(body), reports)) drop(descriptor);
}

void ReportPort::drop(int descriptor) {
  state_.drop(descriptor);
  machines_.erase(descriptor);
}

/// Takes a frame and those after it. False if the connection is of no use any more.
bool ReportPort::take_frames(int descriptor, std::optional<std::string> body,
                             std::vector<PlacedReport>& reports) {
  Connection& connection = machines_.at(descriptor);
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
  Connection& connection = machines_.at(descriptor);
  const std::string bytes = to_bytes(state_.answer(descriptor));
  return connection.wire.write(connection.channel.seal(bytes), kMostUnsent);
}

void ReportPort::hear_machine(int descriptor, std::vector<PlacedReport>& reports) {
  Connection& connection = machines_.at(descriptor);
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
  if (descriptor == listener_.get()) {
    for (const int each : let_in(now)) {
      if (guests_.contains(each)) hear_guest(each, reports);
    }
  } else if (guests_.contains(descriptor)) {
    hear_guest(descriptor, reports);
  } else if (machines_.contains(descriptor)) {
    hear_machine(descriptor, reports);
  }
  return reports;
}

void ReportPort::decide(const Decision& decision) {
  state_.decide(decision);
  for (const int each : state_.connections()) {
    if (!answer(each)) drop(each);
  }
}

void ReportPort::turn(Time now) {
  std::erase_if(guests_,
                [now](const auto& each) { return now - each.second.since > kPatienceWithGuests; });
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
