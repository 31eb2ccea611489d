// SPDX-License-Identifier: MIT
// Asks the user at the terminal what `ssh` wants to know (askpass.h); the host's name comes first.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ssh/connect_options.h"
#include "ssh/host.h"
#include "ssh/kept/kept_folder.h"
#include "ssh/machine/reactor.h"

namespace dtool::ssh {

/// One connection that is being opened, and its ssh's questions.
struct Opening {
  Host host;
  std::string user;
  std::string address;
  std::map<std::string, std::string> given;  ///< answers by prompt; a prompt that comes again means
                                             ///< that its answer was wrong
  std::optional<std::string> refused;        ///< a prompt that got no answer
  std::size_t answers = 0;
  bool is_asking = false;  ///< asks the user, or waits for the terminal
  bool was_left = false;   ///< its ssh ended while the opening waited for the terminal
  Waiter* door = nullptr;  ///< the waiter with which serve() waits for questions
  Deadline deadline;       ///< moves by the time that the user took
};

/// The user's terminal; it asks one question at a time.
class Asker {
 public:
  Asker(Reactor& reactor, Ask ask) : reactor_(reactor), ask_(ask) {}
  ~Asker();
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

  /// Answers the questions of that opening's ssh at `listener`, until `is_over`.
  asio::awaitable<void> serve(const OwnedFd& listener, Opening& opening, const bool& is_over);

  /// Asks no more questions.
  void stop() { is_stopped_ = true; }

 private:
  class Turn;
  asio::awaitable<void> answer(int caller, Opening& opening, const bool& is_over);
  asio::awaitable<std::optional<std::string>> find_answer(int caller, std::string prompt, char kind,
                                                          Opening& opening);
  asio::awaitable<std::optional<std::string>> ask(int caller, std::string line, char kind);
  bool is_alive(int caller) const;

  Reactor& reactor_;
  Ask ask_;
  std::map<std::string, std::string> answers_;  ///< the answers by user and prompt, for Ask::once
  bool is_busy_ = false;
  bool is_stopped_ = false;
};

/// `prompt` without the host's names, to compare the prompts of two hosts.
std::string prompt_of_any_host(const std::string& prompt, const Opening& opening);

}  // namespace dtool::ssh
