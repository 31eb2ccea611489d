// SPDX-License-Identifier: MIT
#include "ssh/host/session/report_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "ssh/host/network.h"
#include "ssh/wire/message.h"

namespace dtool::host {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostBacklog = 1U << 20U;

}  // namespace

ReportLink::ReportLink(const Supervision& settings, std::string token, Watch& watch, Time now)
    : settings_(settings), token_(std::move(token)), watch_(watch), state_(settings, now) {}

void ReportLink::tell(const Report& report, Time now) {
  report_ = report;
  is_new_ = true;
  if (connection_ && connection_->channel) {
    send_report(now);
  } else if (!connection_) {
    state_.wants_connection(now);
  }
}

bool ReportLink::is_told() const {
  return !is_new_ && connection_ && connection_->taken_reports == connection_->sent_reports;
}

void ReportLink::connect(Time now) {
  const Address address = parse_address(settings_.address, settings_.port);
  if (address.size == 0) return lose(LinkFault::silent, now);
  Descriptor socket(
      ::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return lose(LinkFault::silent, now);
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const int result = ::connect(socket.get(), address.get(), address.size);
  if (result != 0 && errno != EINPROGRESS)
    return lose(errno == ECONNREFUSED ? LinkFault::refused : LinkFault::silent, now);
  connection_.emplace(Connection{Wire(std::move(socket), watch_), now});
  connection_->wire.wait_until(Until::readable_or_writable);
}

/// The connection is there, or has failed.
void ReportLink::greet(Time now) {
  int reason = 0;
  socklen_t size = sizeof reason;
  ::getsockopt(connection_->wire.descriptor(), SOL_SOCKET, SO_ERROR, &reason, &size);
  if (reason != 0)
    return lose(reason == ECONNREFUSED ? LinkFault::refused : LinkFault::silent, now);
  connection_->wire.wait_until(Until::readable);
  connection_->hello = make_hello(token_, settings_.place);
  if (!connection_->wire.write(connection_->hello, kMostBacklog)) lose(LinkFault::silent, now);
}

/// Gives the connection up; another one is made later.
void ReportLink::lose(LinkFault fault, Time now) {
  const bool was_good = connection_ && connection_->channel && connection_->taken_reports > 0;
  connection_.reset();
  is_new_ = report_.has_value();
  state_.lost_connection(fault, was_good, now);
}

void ReportLink::send_report(Time now) {
  connection_->sent = now;
  ++connection_->sent_reports;
  is_new_ = false;
  if (!connection_->wire.write(connection_->channel->seal(to_bytes(*report_)), kMostBacklog))
    lose(LinkFault::silent, now);
}

std::optional<Decision> ReportLink::hear(Time now) {
  std::string bytes;
  const Wire::Read read = connection_->wire.read(bytes, std::size_t{64} << 10U);
  if (read == Wire::Read::closed || !connection_->wire.flush()) {
    lose(LinkFault::silent, now);
    return std::nullopt;
  }
  if (!connection_->channel) {
    std::string& welcome = connection_->welcome;
    welcome += bytes;
    if (welcome.size() < kWelcomeSize) return std::nullopt;
    bytes = welcome.substr(kWelcomeSize);
    welcome.resize(kWelcomeSize);
    if (!is_welcome(token_, connection_->hello, welcome)) {
      lose(LinkFault::unproven, now);
      return std::nullopt;
    }
    connection_->channel.emplace(token_, connection_->hello, welcome, End::machine, kLongestAnswer);
    connection_->heard = now;
    if (report_) send_report(now);
    if (!connection_) return std::nullopt;
  }
  connection_->channel->add(bytes);
  std::optional<Decision> decision;
  try {
    while (const auto body = connection_->channel->next()) {
      Answer answer = parse_answer(*body, settings_.places);
      connection_->taken_reports = answer.taken;
      connection_->heard = now;
      state_.heard_answer(now);
      if (answer.decision) decision = std::move(answer.decision);
    }
  } catch (const BadMessage&) {
    lose(LinkFault::unproven, now);
  }
  return decision;
}

std::optional<Decision> ReportLink::take(int descriptor, Time now) {
  if (!connection_ || connection_->wire.descriptor() != descriptor) return std::nullopt;
  if (!connection_->hello.empty()) return hear(now);
  greet(now);
  return std::nullopt;
}

std::optional<Time> ReportLink::time_to_next_try(Time now) const {
  if (connection_) return std::nullopt;
  return std::max(state_.next_try() - now, Time(0));
}

std::optional<std::string> ReportLink::turn(Time now) {
  if (state_.look(now) && connection_) connection_->since = connection_->heard = now;
  if (!connection_ && now >= state_.next_try()) connect(now);
  if (connection_ && !connection_->channel && state_.is_late(connection_->since, now))
    lose(LinkFault::silent, now);
  if (connection_ && connection_->channel && state_.is_stale(connection_->heard, now))
    lose(LinkFault::silent, now);
  if (connection_ && connection_->channel && report_ && state_.is_sign_due(connection_->sent, now))
    send_report(now);
  return state_.take_loss(now);
}

namespace {

using namespace std::chrono_literals;

constexpr Time kForConnecting = 5s;
constexpr Time kForRefusals = 5s;  // a session that begins a little later listens by then
constexpr Time kFrozenAfter = 5s;
constexpr Time kFirstPause = 250ms;

}  // namespace

LinkState::LinkState(const Supervision& settings, Time now)
    : settings_(settings),
      beat_(time_between_signs(settings)),
      stale_after_(std::min<Time>(10s + beat_, Time(settings.lost_after) / 3)),
      next_try_(now),
      heard_(now),
      looked_at_(now) {}

void LinkState::heard_answer(Time now) {
  heard_ = now;
  was_heard_ = true;
  failed_tries_ = 0;
  fault_ = LinkFault::none;
  refused_since_.reset();
  unproven_since_.reset();
  told_loss_.clear();
}

/// Another connection is tried after a pause that grows; one that was good is made again at once.
void LinkState::lost_connection(LinkFault fault, bool was_good, Time now) {
  fault_ = fault;
  if (fault == LinkFault::refused && !refused_since_) refused_since_ = now;
  if (fault == LinkFault::unproven && !unproven_since_) unproven_since_ = now;
  failed_tries_ = was_good ? 0 : std::min(failed_tries_ + 1, 5);
  const Time longest = 2s + Time(4 * settings_.places);
  // Not all at the same moment.
  const Time apart(settings_.place * 7 % 100);
  next_try_ = now + std::min<Time>(longest, kFirstPause * (1 << failed_tries_) / 2) + apart;
}

void LinkState::wants_connection(Time now) {
  next_try_ = std::min(next_try_, now + kFirstPause);
}

bool LinkState::look(Time now) {
  const bool was_frozen = now - looked_at_ > kFrozenAfter;
  if (was_frozen) {
    heard_ = now;
    refused_since_.reset();
    unproven_since_.reset();
    if (fault_ != LinkFault::none) fault_ = LinkFault::silent;
  }
  looked_at_ = now;
  return was_frozen;
}

bool LinkState::is_late(Time since, Time now) const {
  return now - since > kForConnecting;
}

bool LinkState::is_stale(Time heard, Time now) const {
  return now - heard > stale_after_;
}

bool LinkState::is_refused(Time now) const {
  return fault_ == LinkFault::refused && now - *refused_since_ >= kForRefusals;
}

std::optional<std::string> LinkState::find_loss(Time now) const {
  const std::string where = settings_.address + ":" + std::to_string(settings_.port);
  if (fault_ == LinkFault::none) return std::nullopt;
  if (is_refused(now)) return "nothing listens at " + where + ": the session on machine 0 is gone";
  if (fault_ == LinkFault::refused) return std::nullopt;
  const bool is_silent = now - heard_ >= settings_.lost_after;
  if (unproven_since_ && (!was_heard_ || is_silent))
    return "what answers at " + where + " does not prove that it is the session on machine 0";
  if (!is_silent) return std::nullopt;
  return "machine " + std::to_string(settings_.place) + " (" + settings_.host +
         ") has had no answer from machine 0 at " + where + " for " +
         std::to_string(settings_.lost_after.count()) + " s";
}

std::optional<std::string> LinkState::take_loss(Time now) {
  auto loss = find_loss(now);
  if (!loss || *loss == told_loss_) return std::nullopt;
  told_loss_ = *loss;
  return loss;
}

}  // namespace dtool::host
