// SPDX-License-Identifier: MIT
// The progress of sending the code to all hosts of a run, in one line.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ssh/remote.h"

namespace dtool::cli {

class SendingProgress {
 public:
  using Clock = std::chrono::steady_clock;

  /// `what` is sent to that many hosts: `the code`.
  SendingProgress(std::string what, std::size_t hosts) : what_(std::move(what)), hosts_(hosts) {}

  void sent(std::size_t host, const ssh::Transferred& what, Clock::time_point now);
  /// The host has received everything, or has failed.
  void done(std::size_t host);

  /// Hosts that are done, and megabytes sent; the total if it is known of every host; after a
  /// second also megabytes per second, and the time left.
  std::string line(Clock::time_point now) const;

 private:
  struct Host {
    ssh::Transferred sent = {};
    bool is_done = false;
  };

  std::string what_;
  std::vector<Host> hosts_;
  std::optional<Clock::time_point> begun_;
};

}  // namespace dtool::cli
