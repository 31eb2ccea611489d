// What `ssh` asks the user (passwords, one-time codes, passphrases, PINs): each ssh is told to run
// dtool itself for that (SSH_ASKPASS), which hands the prompt to the dtool that waits for the
// connection, over a socket in a folder of the user's alone; that one asks at the terminal, with
// the host's name. An answer is never an argument, a variable or in a file.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ssh/fleet.h"
#include "ssh/host.h"
#include "ssh/kept_folder.h"
#include "ssh/reactor.h"

namespace dtool::ssh {

/// Whether this process was started by ssh to ask something: by the variable that dtool gives ssh,
/// and the one argument that ssh gives.
bool is_askpass(int argc);

/// The program that ssh runs: prints the answer to `prompt`; 1 where there is none.
int askpass(const std::string& prompt);

/// One connection that is being opened, and what its ssh has asked.
struct Opening {
  Host host;
  std::string user;
  std::string address;
  std::map<std::string, std::string> given;  ///< answers by prompt; a prompt that comes again says
                                             ///< that its answer was not taken
  std::optional<std::string> refused;        ///< a prompt to which nobody gave an answer
  std::size_t answers = 0;
  bool is_asking = false;      ///< the user, or waits for the terminal
  bool was_left = false;       ///< ended while it waited for the terminal
  Deadline deadline;           ///< moves by the time the user took
};

/// The user's terminal, at which one question is asked at a time.
class Asker {
 public:
  Asker(Reactor& reactor, Ask ask) : reactor_(reactor), ask_(ask) {}
  ~Asker();
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

  /// Answers what the ssh of that opening asks at `listener`, until `is_over`.
  asio::awaitable<void> serve(const OwnedFd& listener, Opening& opening, const bool& is_over);

  /// From now on nobody is asked.
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
  std::map<std::string, std::string> answers_;  ///< by user and prompt, for Ask::once
  bool is_busy_ = false;
  bool is_stopped_ = false;
};

/// What ssh needs in its environment so that it asks at the socket `name` of KeptFolder.
std::vector<std::string> askpass_environment(const std::string& name);

/// `prompt` with the host's names taken out, so that prompts of two hosts can be compared.
std::string prompt_of_any_host(const std::string& prompt, const Opening& opening);

}  // namespace dtool::ssh
