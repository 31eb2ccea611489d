// SPDX-License-Identifier: MIT
#include "ssh/host/holder.h"

#include <cstdlib>
#include <stdexcept>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/own_program.h"
#include "ssh/wire/words.h"

namespace dtool::host {

std::string name_of(Holder holder) {
  switch (holder) {
    case Holder::screen:
      return "screen";
    case Holder::tmux:
      return "tmux";
    case Holder::none:
      return "none";
  }
  return "none";
}

std::vector<Holder> find_holders() {
  std::vector<Holder> holders;
  for (const Holder each : {Holder::screen, Holder::tmux})
    if (is_program(name_of(each))) holders.push_back(each);
  holders.push_back(Holder::none);
  return holders;
}

std::string hold_session(Holder holder, const std::string& session, const std::string& state,
                         const std::string& log) {
  if (holder == Holder::none)
    return start_detached({own_path(), "session", log}, state, Descriptor());
  std::vector<std::string> words;
  if (holder == Holder::screen) {
    words = {"screen", "-dmS", session, own_path(), "session", log};
  } else {
    // The job has its own server, with a socket in the state folder: it never meets the user's
    // sessions, and ends with the job. Its keys are screen's, so that users who attach need not
    // know which of the two it is.
    ::unsetenv("TMUX");
    words = {"tmux", "-S",     "tmux",     "-f",      "/dev/null",  "new-session", "-d",
             "-s",   "job",    own_path(), "session", log,          ";",           "set-option",
             "-g",   "status", "off",      ";",       "set-option", "-g",          "prefix",
             "C-a",  ";",      "bind-key", "a",       "send-prefix"};
  }
  const ChildResult held = run_program(words, std::chrono::seconds(20), state);
  if (held.ok()) return {};
  const std::string fault = words[0] + " did not start: " + as_line(held.out + held.err);
  // It may still begin the session.
  if (held.timed_out) throw std::runtime_error(fault + " (in 20 s)");
  return fault;
}

}  // namespace dtool::host
