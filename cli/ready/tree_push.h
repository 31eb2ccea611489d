// SPDX-License-Identifier: MIT
// Sends a tree to the hosts of a run and shows the progress: the code, or the trainer.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "cli/ready/sending_progress.h"
#include "ssh/host.h"
#include "ssh/remote.h"
#include "sync/push/push.h"
#include "sync/tree.h"

namespace dtool::cli {

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

}  // namespace dtool::cli
