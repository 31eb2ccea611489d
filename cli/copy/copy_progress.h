// SPDX-License-Identifier: MIT
// What `dtool copy` shows meanwhile: one line about all hosts, and what an interrupt means.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "cli/console.h"
#include "cli/run/sending_progress.h"
#include "ssh/remote.h"

namespace dtool::cli {

class CopyProgress : public ssh::Events {
 public:
  CopyProgress(Console& console, std::size_t hosts)
      : console_(console), sending_("the files", hosts) {}

  /// The host has all there is for it.
  void done(std::size_t host) { sending_.done(host); }

  void on_progress(std::size_t host, const ssh::Transferred& sent) override {
    const auto now = SendingProgress::Clock::now();
    sending_.sent(host, sent, now);
    if (now - shown_ < kShowEvery) return;
    shown_ = now;
    console_.progress(sending_.line(now));
  }
  void on_result(std::size_t host, const ssh::HostResult&) override {
    sending_.done(host);
    console_.progress(sending_.line(SendingProgress::Clock::now()));
  }
  void on_interrupt(const std::vector<std::size_t>&) override {
    console_.note("interrupted: what has come stays, and the same command goes on from there");
  }

 private:
  static constexpr std::chrono::milliseconds kShowEvery{50};

  Console& console_;
  SendingProgress sending_;
  SendingProgress::Clock::time_point shown_ = {};
};

}  // namespace dtool::cli
