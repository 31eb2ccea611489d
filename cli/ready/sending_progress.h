// SPDX-License-Identifier: MIT
// The progress of sending something to all hosts, or of receiving it, in one line.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/console.h"
#include "ssh/remote.h"

namespace dtool::cli {

class SendingProgress {
 public:
  using Clock = std::chrono::steady_clock;

  /// `doing`, with that many hosts: `sending the code`.
  SendingProgress(std::string doing, std::size_t hosts) : doing_(std::move(doing)), hosts_(hosts) {}

  void sent(std::size_t host, const ssh::Transferred& what, Clock::time_point now);
  /// The host has received everything, or has failed.
  void done(std::size_t host);

  /// Hosts that are done, and megabytes sent; the total if it is known of every host.
  std::string amounts() const;
  /// The same, after a second also megabytes per second, and the time left.
  std::string line(Clock::time_point now) const;

 private:
  struct Host {
    ssh::Transferred sent = {};
    bool is_done = false;
  };
  struct Sums {
    std::size_t done = 0;
    std::uint64_t sent = 0;
    std::optional<std::uint64_t> all = 0;  ///< none: not known
  };

  Sums sums() const;

  std::string doing_;
  std::vector<Host> hosts_;
  std::optional<Clock::time_point> begun_;
};

/// Shows that line while hosts are being sent something.
class SendingReporter : public ssh::Events {
 public:
  /// `on_interrupt`: what a note says then. `large`: a note once a host is to be sent more than
  /// 20 MB; empty: none.
  SendingReporter(Console& console, std::string doing, const std::vector<ssh::Host>& hosts,
                  std::string on_interrupt, std::string large = {})
      : console_(console),
        hosts_(hosts),
        sending_(std::move(doing), hosts.size()),
        on_interrupt_(std::move(on_interrupt)),
        large_(std::move(large)) {}

  /// The host has all there is for it.
  void done(std::size_t host) { sending_.done(host); }

  void on_progress(std::size_t host, const ssh::Transferred& sent) override;
  /// Names the few hosts that are waited for.
  void on_silence(const std::vector<std::size_t>& waiting) override;
  void on_result(std::size_t host, const ssh::HostResult& result) override;
  void on_interrupt(const std::vector<std::size_t>& running) override;

 private:
  Console& console_;
  std::vector<ssh::Host> hosts_;
  SendingProgress sending_;
  std::string on_interrupt_;
  std::string large_;
  SendingProgress::Clock::time_point shown_ = {};
};

}  // namespace dtool::cli
