// SPDX-License-Identifier: MIT
// A machine's link to machine 0, with messages in place of sockets.
#include <algorithm>

#include "tests/simulation/world.h"

namespace dtool::simulation {

void SimulatedLink::tell(const Report& report, Time now) {
  report_ = report;
  is_new_ = true;
  if (connection_ && connection_->is_welcome) {
    send_report(now);
  } else if (!connection_) {
    state_.wants_connection(now);
  }
}

void SimulatedLink::send_report(Time now) {
  connection_->sent = now;
  ++connection_->sent_reports;
  is_new_ = false;
  world_.send_to_port({Message::Kind::report, place_, connection_->number, *report_});
}

void SimulatedLink::lose(LinkFault fault, Time now) {
  const bool was_good = connection_ && connection_->is_welcome && connection_->taken > 0;
  if (connection_) world_.reset(connection_->number);
  connection_.reset();
  is_new_ = report_.has_value();
  state_.lost_connection(fault, was_good, now);
}

std::optional<Decision> SimulatedLink::take(const Message& message, Time now) {
  if (!connection_ || message.connection != connection_->number) return std::nullopt;
  if (message.kind == Message::Kind::refusal) {
    lose(connection_->is_welcome ? LinkFault::silent : LinkFault::refused, now);
    return std::nullopt;
  }
  if (message.kind == Message::Kind::welcome) {
    connection_->is_welcome = true;
    connection_->heard = now;
    if (report_) send_report(now);
    return std::nullopt;
  }
  connection_->taken = message.answer.taken;
  connection_->heard = now;
  state_.heard_answer(now);
  return message.answer.decision;
}

std::optional<std::string> SimulatedLink::turn(Time now) {
  if (state_.look(now) && connection_) connection_->since = connection_->heard = now;
  if (!connection_ && now >= state_.next_try()) {
    connection_.emplace(Connection{world_.new_connection(), false, now, {}, {}, 0, 0});
    world_.send_to_port({Message::Kind::hello, place_, connection_->number});
  }
  if (connection_ && !connection_->is_welcome && state_.is_late(connection_->since, now))
    lose(LinkFault::silent, now);
  if (connection_ && connection_->is_welcome && state_.is_stale(connection_->heard, now))
    lose(LinkFault::silent, now);
  if (connection_ && connection_->is_welcome && report_ &&
      state_.is_sign_due(connection_->sent, now))
    send_report(now);
  return state_.take_loss(now);
}

}  // namespace dtool::simulation
