// SPDX-License-Identifier: MIT
#include "ssh/notice.h"

#include <utility>

namespace dtool::ssh {

namespace {

std::function<void(std::string_view)>& taker_of_notices() {
  static std::function<void(std::string_view)> taker;
  return taker;
}

int questions = 0;  // all in one thread, the event loop's

}  // namespace

OpenQuestion::OpenQuestion() {
  ++questions;
}

OpenQuestion::~OpenQuestion() {
  --questions;
}

bool is_question_open() {
  return questions > 0;
}

void give_notices_to(std::function<void(std::string_view)> taker) {
  taker_of_notices() = std::move(taker);
}

void notice(std::string_view line) {
  if (taker_of_notices()) taker_of_notices()(line);
}

}  // namespace dtool::ssh
