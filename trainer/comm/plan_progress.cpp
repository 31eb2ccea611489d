// SPDX-License-Identifier: MIT
// A round's message has to wait only for overlapping messages of earlier rounds. Only the rounds
// between the two directions' positions matter: the others are finished or come later.
#include "trainer/comm/plan_progress.h"

#include <algorithm>

namespace dtool::trainer {
namespace {

std::int64_t to_send(const Round& round) {
  return round.send_to == kNobody ? 0 : round.send.size();
}

std::int64_t to_receive(const Round& round) {
  return round.receive_from == kNobody ? 0 : round.receive.size();
}

/// The part of `wanted`, from its beginning, that lies before the missing part of `other`, whose
/// first `ready` numbers are there.
std::int64_t before(const Section& wanted, const Section& other, std::int64_t ready) {
  const bool overlap = wanted.begin < other.end && other.begin < wanted.end;
  if (!overlap) return wanted.size();
  return std::clamp<std::int64_t>(other.begin + ready - wanted.begin, 0, wanted.size());
}

}  // namespace

PlanProgress::PlanProgress(const Plan& plan) : plan_(plan) {
  skip_empty();
}

void PlanProgress::skip_empty() {
  while (is_sending() && sent_ == to_send(out())) {
    ++sending_;
    sent_ = 0;
  }
  while (is_receiving() && received_ == to_receive(in())) {
    ++receiving_;
    received_ = 0;
  }
}

std::int64_t PlanProgress::may_send() const {
  if (!is_sending()) return 0;
  std::int64_t end = out().send.size();
  for (std::size_t i = receiving_; i < sending_; ++i) {
    if (to_receive(plan_[i]) == 0) continue;
    end = std::min(end, before(out().send, plan_[i].receive, i == receiving_ ? received_ : 0));
  }
  return std::max<std::int64_t>(end - sent_, 0);
}

std::int64_t PlanProgress::may_receive() const {
  if (!is_receiving()) return 0;
  std::int64_t end = in().receive.size();
  for (std::size_t i = sending_; i <= receiving_; ++i) {
    if (to_send(plan_[i]) == 0) continue;
    end = std::min(end, before(in().receive, plan_[i].send, i == sending_ ? sent_ : 0));
  }
  return std::max<std::int64_t>(end - received_, 0);
}

void PlanProgress::add_sent(std::int64_t count) {
  sent_ += count;
  skip_empty();
}

void PlanProgress::add_received(std::int64_t count) {
  received_ += count;
  skip_empty();
}

}  // namespace dtool::trainer
