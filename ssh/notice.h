// SPDX-License-Identifier: MIT
// Lines for the user and questions to the user while hosts are being reached. This folder has no
// terminal of its own.
#pragma once

#include <functional>
#include <string_view>

namespace dtool::ssh {

/// Sets where such lines go; until then they are dropped.
void give_notices_to(std::function<void(std::string_view)> taker);

/// Called from the event loop.
void notice(std::string_view line);

/// While it lives, the user is asked a question at the terminal, and nothing else may be drawn
/// there.
class OpenQuestion {
 public:
  OpenQuestion();
  ~OpenQuestion();
  OpenQuestion(const OpenQuestion&) = delete;
  OpenQuestion& operator=(const OpenQuestion&) = delete;
};

/// Whether there is such a question.
bool is_question_open();

}  // namespace dtool::ssh
