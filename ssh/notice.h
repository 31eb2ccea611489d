// What the user is told and asked while hosts are reached: the folder has no terminal of its own,
// and no caller to hand it to.
#pragma once

#include <functional>
#include <string_view>

namespace dtool::ssh {

/// Where such lines go from now on; nowhere until this is called.
void give_notices_to(std::function<void(std::string_view)> taker);

/// Called from the event loop.
void notice(std::string_view line);

/// While it lives, the user is asked a question at the terminal, and nothing else is to be drawn
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
