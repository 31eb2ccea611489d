// SPDX-License-Identifier: MIT
// Sends a tree to the hosts of a run and shows the progress: the code, or the trainer.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/console.h"
#include "cli/ready/check_hosts.h"
#include "ssh/host.h"
#include "ssh/remote.h"
#include "sync/push/push.h"
#include "sync/tree.h"

namespace dtool::cli {

// The progress of sending something to all hosts, or of receiving it, in one line.

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
    std::optional<std::uint64_t> all = 0;  ///< the bytes to send in all; none: not known
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

/// What is sent, in the words of messages, and how.
struct Sending {
  std::string what = "the code";
  tree_sync::Relay relay = tree_sync::Relay::where_it_pays;
  tree_sync::Foreign foreign = tree_sync::Foreign::refuse;
  std::string large = {};  ///< a note once a host is sent more than 20 MB; empty: none
};

/// Sends a tree to hosts and shows the progress. All arguments must outlive it.
class TreePush {
 public:
  TreePush(Console& console, const std::vector<ssh::Host>& hosts, const tree_sync::Tree& tree,
           const std::vector<tree_sync::Destination>& destinations, Sending sending);

  /// The push's tasks for the hosts.
  tree_sync::Pushing& steps() { return *steps_; }

  /// Call it when all hosts have gone through the steps: continues with those that had to wait for
  /// another host.
  std::vector<ssh::HostResult> finish(ssh::Remote& remote);

 private:
  Console& console_;
  const std::vector<ssh::Host>& hosts_;
  std::string what_;
  SendingReporter reporter_;
  std::unique_ptr<tree_sync::Pushing> steps_;
};

/// Notes in one line which hosts did not get what was sent from their first parent, and why.
void note_missed(Console& console, const std::vector<ssh::Host>& hosts,
                 const std::vector<tree_sync::Missed>& missed, std::string_view what);

/// Sends a tree to its destinations, and waits until all have it or have failed.
std::vector<ssh::HostResult> send_tree(Console& console, ssh::Remote& remote,
                                       const tree_sync::Tree& tree,
                                       const std::vector<tree_sync::Destination>& destinations,
                                       Sending sending);

/// Sends what dtool itself keeps in `folder` (the trainer, Python packages) to the hosts at those
/// places among the Remote's.
std::vector<ssh::HostResult> send_to_store(Console& console, ssh::Remote& remote,
                                           const tree_sync::Tree& tree, std::string what,
                                           const std::string& folder,
                                           const std::vector<std::size_t>& places);

// Checks hosts and gives the trainer to those that have none: for `dtool run` and `dtool install`.

/// Judges the hosts after a step, which is named as a failure names it: `sending the trainer`.
/// False ends the work there.
using GoesOn = std::function<bool(const std::vector<Checked>& checked, std::string_view doing)>;

/// The push for the next check of the hosts (check_hosts), or null.
using NextPush = std::function<tree_sync::Pushing*()>;

struct SuppliedHosts {
  std::vector<Checked> checked;
  std::vector<bool> is_sent;  ///< whether each host was sent the trainer, and has it now
  bool went_on = true;        ///< the work went on through all steps
};

/// Checks all hosts. If some await the trainer, sends it to them and checks all once more; a host
/// that failed before that stays as it failed. Throws std::runtime_error if this machine cannot
/// make the bundle ready.
SuppliedHosts check_and_supply(Console& console, ssh::Remote& remote, Needs needs,
                               const GoesOn& goes_on, const NextPush& next_push);

}  // namespace dtool::cli
