// SPDX-License-Identifier: MIT
#include "ssh/host/session/link_state.h"

#include <algorithm>

namespace dtool::host {
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
