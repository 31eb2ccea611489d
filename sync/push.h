// SPDX-License-Identifier: MIT
// Sends the code tree to every host, and deletes files of an earlier push that the tree no longer
// has. A host with the unchanged tree is asked once. What other hosts lack is packed once for all
// that lack the same. Where packages do not fit, rsync compares.
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

#include "ssh/host/messages/tree.h"
#include "ssh/remote.h"
#include "sync/listing.h"
#include "sync/relay/relaying.h"
#include "sync/rsync.h"
#include "sync/tree.h"

namespace dtool::tree_sync {

/// The copy of the tree that a host makes for a run alone.
using host::OwnTree;

/// Where the tree goes on one host.
struct Destination {
  std::size_t host = 0;             ///< index into Remote::hosts()
  std::string folder;               ///< on the host: absolute, or from `~/`; made if missing
  std::optional<OwnTree> own = {};  ///< made as soon as the tree is there, sent or not
};

/// What a push did on one host.
struct Pushed {
  Sent sent;
  std::size_t removed = 0;   ///< files that the tree no longer has
  bool is_the_tree = false;  ///< the folder is the very folder that was to be sent: nothing was
                             ///< done
};

/// Whether hosts pass a package on to each other, so that this machine sends it once and not once
/// per host: never, if it saves more than it costs, or always.
enum class Relay { no, where_it_pays, yes };

/// What happens to a host's files that have names of the tree, differ from the tree's, and were not
/// put there by dtool or were changed since, and to changed files that the tree no longer has: the
/// host fails and names them, or they are overwritten and deleted.
enum class Foreign { refuse, overwrite };

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
  /// Where hosts pass packages on: the hosts that did not get the package from their first parent.
  /// They got it later, from another host or from here.
  virtual std::vector<Missed> missed() const { return {}; }
};

/// Sends `tree` to all destinations, at most one per host. A file of the tree replaces a file of
/// that name that dtool put there and nobody changed, and one with the same content; `foreign`
/// decides about all others. A folder that holds a foreign file is never replaced. Nothing is
/// deleted on a host where sending failed. If rsync failed, `exit_code` is its exit code and
/// `error` its own message. `hosts` are the Remote's. The timeout in `options` is for each step of
/// a host. Throws std::invalid_argument on a folder that is neither absolute nor from `~/`, and on
/// two destinations on one host. `tree` and `events` must outlive the push.
std::unique_ptr<Pushing> make_push(const std::vector<ssh::Host>& hosts, const Tree& tree,
                                   const std::vector<Destination>& destinations,
                                   ssh::Events& events, const ssh::TaskOptions& options,
                                   Relay relay = Relay::no, Foreign foreign = Foreign::refuse);

}  // namespace dtool::tree_sync
