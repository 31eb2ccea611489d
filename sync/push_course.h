// SPDX-License-Identifier: MIT
// Which step of a push comes next on a host, by what it said to the one before. push.cpp makes the
// steps its tasks.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ssh/host/messages/tree.h"
#include "sync/package.h"
#include "sync/push.h"
#include "sync/push_steps.h"
#include "sync/relay/relaying.h"
#include "sync/relay/schedule.h"
#include "sync/rsync.h"

namespace dtool::tree_sync {

/// `await`: until another host can pass the package on. `serve`: has the tree, and passes it on.
/// `refuse`: takes the mark in the folder away, then the host fails.
enum class PushStep {
  ask,
  await,
  unpack,
  serve,
  prepare,
  compare,
  refuse,
  send,
  prune,
  freeze,
  done
};

/// One host on its way through the steps.
struct PushSlot {
  Destination destination;
  PushStep step = PushStep::ask;
  host::TreeReply reply = {};
  bool shares = false;  ///< its folder with a host that has it in hand: it waits for that one
  bool has_unpacked = false;
  bool follows = false;  ///< it shares the folder of a host that has unpacked: the tree is there,
                         ///< and any number of hosts may check it at once
  std::optional<host::TreeRoot> root = {};  ///< with the mark by which it proves that it sees it
  const Package* package = nullptr;         ///< that it is sent: with the question a guess
  host::RelayPart part = {};
  host::PrepareReply prepared = {};
  bool has_compared = false;  ///< with the files there that are not as dtool sent them
  Differences differences = {};
  ssh::HostResult result = {};
  Pushed pushed = {};
  ProgressReader progress = {};
  std::string out_tail = {};  ///< of rsync, whose progress on a large tree would fill the memory
  std::string err = {};
};

/// By which the host reads what it is sent.
Compression compression_for(const PushSlot& slot);

/// What all hosts of a push share on their way. All arguments must outlive it.
class PushCourse {
 public:
  PushCourse(const std::vector<ssh::Host>& hosts, const Tree& tree, const Listing& listing,
             Relay relay, std::size_t destinations);

  /// What comes after `slot.step`, whose result is in `slot.result`; this gets its error and hint.
  PushStep next(PushSlot& slot);

  /// A package to send with the first question; null if there is none.
  const Package* guess();
  const host::TreeRoot& unproven_root() const { return root_.unproven(); }
  Same same_for(const PushSlot& slot) const;
  /// Null if the host's package is not sealed.
  Relaying* relaying_of(const PushSlot& slot);
  void forget_packages();
  std::vector<Missed> missed() const;

 private:
  PushStep after_ask(PushSlot& slot);
  PushStep take_part(PushSlot& slot);
  PushStep after_unpack(PushSlot& slot);
  PushStep while_serving(PushSlot& slot);
  PushStep after_package(PushSlot& slot, const host::Unpacked& unpacked);
  PushStep after_compare(PushSlot& slot);
  const Package* package_for(const PushSlot& slot);
  bool passes_on(const Package& package) const;

  const std::vector<ssh::Host>& hosts_;
  const Tree& tree_;
  Root root_{tree_};
  bool is_kept_ = false;
  Packages packages_;
  const Relay relay_;
  const std::size_t destinations_;
  Schedule schedule_;
  PackageServers servers_;
  std::map<const Package*, Relaying> relayings_;  ///< of sealed packages
  std::vector<Missed> missed_;                    ///< beside what relayings_ know
};

}  // namespace dtool::tree_sync
