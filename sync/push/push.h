// SPDX-License-Identifier: MIT
// Sends the code tree to every host, and deletes files of an earlier push that the tree no longer
// has. A host with the unchanged tree is asked once; one that lacks little is sent it with that
// question. What other hosts lack comes in parcels (sync/copy/parcels.h) and lies aside there until
// all has come, so an interrupted push goes on where it stopped.
//
// On each host dtool keeps a list of the files that it put into a folder, in `~/.dtool/trees`. It
// deletes only files of that list, nothing through a link, and nothing outside the folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ssh/remote.h"
#include "ssh/wire/tree.h"
#include "sync/listing.h"
#include "sync/relaying.h"
#include "sync/rsync.h"
#include "sync/tree.h"

namespace dtool::tree_sync {

/// The copy of the tree that a host makes for a run alone.
using host::OwnTree;

/// Where the tree goes on one host.
struct Destination {
  std::size_t host = 0;  ///< index into Remote::hosts()
  std::string folder;    ///< the folder on the host: absolute, or from `~/`; made if missing
  std::optional<OwnTree> own = {};  ///< made as soon as the tree is there, sent or not
};

/// What a push did on one host.
struct Pushed {
  Sent sent;
  std::size_t removed = 0;   ///< files that the tree no longer has
  bool is_the_tree = false;  ///< the folder is the very folder that was to be sent: nothing was
                             ///< done
};

/// A push in which each host goes from step to step without waiting for the others. An observer
/// that gives hosts other tasks first must forward the events of those that have begun the push.
struct Pushing : ssh::Events {
  /// The host's first task; next_task has the later ones.
  virtual ssh::Task first_task(std::size_t host) const = 0;
  /// Call it when all hosts have answered. It continues with the hosts that had to wait for another
  /// host with the same folder. Returns the results in the destinations' order.
  virtual std::vector<ssh::HostResult> finish(ssh::Remote& remote) = 0;
  /// What was done on a host that has answered.
  virtual Pushed pushed(std::size_t /*host*/) const { return {}; }
  /// What is sent, with its fingerprint; nothing: it was not listed.
  virtual const Listing* listing() const { return nullptr; }
  /// Where hosts pass parcels on: the hosts that did not get one from their first parent. They got
  /// it later, from another host or from here.
  virtual std::vector<Missed> missed() const { return {}; }
};

/// Sends `tree` to all destinations, at most one per host. A file of the tree replaces a file of
/// that name that dtool put there and nobody changed, and one with the same content; `foreign`
/// decides about all others. A folder that holds a foreign file is never replaced. Nothing is
/// changed or deleted in the folder of a host where sending failed. `hosts` are the Remote's. The
/// timeout in `options` is for each step of a host. Throws std::invalid_argument on a folder that
/// is neither absolute nor from `~/`, and on two destinations on one host. `tree` and `events` must
/// outlive the push.
std::unique_ptr<Pushing> make_push(const std::vector<ssh::Host>& hosts, const Tree& tree,
                                   const std::vector<Destination>& destinations,
                                   ssh::Events& events, const ssh::TaskOptions& options,
                                   Relay relay = Relay::no, Foreign foreign = Foreign::refuse);

}  // namespace dtool::tree_sync
