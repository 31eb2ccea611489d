// SPDX-License-Identifier: MIT
// How a step on one host fails, also in an Events of another folder. That host's worker turns it
// into a HostResult, so no caller of Remote::run meets it.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "ssh/remote.h"

namespace dtool::ssh {

/// what() is the sentence for HostResult::error.
class HostError : public std::runtime_error {
 public:
  HostError(Failure failure, const std::string& sentence, std::string hint = {})
      : std::runtime_error(sentence), failure_(failure), hint_(std::move(hint)) {}

  Failure failure() const { return failure_; }
  const std::string& hint() const { return hint_; }

 private:
  Failure failure_;
  std::string hint_;
};

/// The error of a command that ran out of time and was told to end.
inline HostError command_timed_out() {
  return {Failure::timed_out, "the command did not end in time"};
}

/// The error of a server that lets the user in and opens no session.
inline HostError no_session(const std::string& why) {
  return {
      Failure::connection_lost, "the server opens no session: " + why,
      "its sshd_config may have MaxSessions 0, or allow this user the forwarding of connections "
      "only"};
}

/// The most that is kept of one host's output; who wants more takes it as it comes.
inline constexpr std::size_t kMostHeld = std::size_t{256} << 20U;

/// The error of a command that wrote more.
inline HostError too_much_output() {
  return {Failure::too_much_output,
          "it wrote more than " + std::to_string(kMostHeld >> 20U) + " MB, and no more was read",
          "have it write to a file there, and fetch that"};
}

}  // namespace dtool::ssh
