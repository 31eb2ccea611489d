// The code tree to every host, and what an earlier push left there that the tree no longer has.
// A host that has the tree untouched is asked once and no more. What others lack is packed once for
// all that lack the same; where that does not do, rsync compares.
//
// On each host dtool keeps a list of the files that it put into a folder, in `~/.dtool/trees`. It
// deletes nothing that is not in that list, nothing through a link, and nothing outside the folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ssh/remote.h"
#include "sync/relay/relaying.h"
#include "sync/rsync.h"
#include "sync/tree.h"

namespace dtool::tree_sync {

/// Where the tree goes on one host.
struct Destination {
  std::size_t host = 0;  ///< index into Remote::hosts()
  std::string folder;    ///< on the host: absolute, or from `~/`; made where it is missing
};

/// What a push did on one host.
struct Pushed {
  Sent sent;
  std::size_t removed = 0;   ///< files that the tree no longer has
  bool is_the_tree = false;  ///< the folder there is the one that was to be sent: nothing was done
};

/// Is told how a push goes, on the thread that called Remote::run.
struct PushListener {
  virtual ~PushListener() = default;
  /// What was sent to the host so far, compressed where it is sent so.
  virtual void on_sent(std::size_t /*host*/, const ssh::Transferred& /*sent*/) {}
  /// The host is done, or has failed; comes once for each.
  virtual void on_result(std::size_t /*host*/, const ssh::HostResult& /*result*/,
                         const Pushed& /*pushed*/) {}
  /// The first SIGINT or SIGTERM came.
  virtual void on_interrupt(const std::vector<std::size_t>& /*running*/) {}
};

/// Whether hosts pass a package on to hosts, so that it leaves this machine once and not once a
/// host.
enum class Relay { no, yes };

/// What becomes of files on a host that dtool did not put there, that bear names of the tree's, and
/// that differ from the tree's: the host fails and names them, or they are overwritten.
enum class Foreign { refuse, overwrite };

/// A push whose hosts each go from step to step without waiting for one another. A listener that
/// has them do other things before it hands on to this what it is told of those that have begun.
struct Pushing : ssh::Listener {
  /// What the host begins with; next_task has what follows.
  virtual ssh::Task first_task(std::size_t host) const = 0;
  /// When all have answered: has those go on that share their folder with another host and had to
  /// wait for it, and returns the results in the destinations' order.
  virtual std::vector<ssh::HostResult> finish(ssh::Remote& remote) = 0;
  /// Under Relay::yes: which hosts did not have the tree as they should, at first; they had it from
  /// another one then, or from here.
  virtual std::vector<Missed> missed() const { return {}; }
};

/// Sends `tree` to all destinations, at most one a host. A file of the tree replaces what dtool put
/// there under its name, and what has the same content; of other files `foreign` tells. A folder
/// with something in it that dtool did not send is never replaced. Nothing is deleted on a host
/// where the sending failed. Where rsync failed, `exit_code` is its exit code and `error`
/// its own words.
/// `hosts` are the Remote's. The timeout in `options` is for each of a host's steps. Throws
/// std::invalid_argument on a folder that is neither absolute nor from `~/`, and on two
/// destinations on one host. `tree` and `listener` must outlive it.
std::unique_ptr<Pushing> make_push(const std::vector<ssh::Host>& hosts, const Tree& tree,
                                   const std::vector<Destination>& destinations,
                                   PushListener& listener, const ssh::TaskOptions& options,
                                   Relay relay = Relay::no, Foreign foreign = Foreign::refuse);

}  // namespace dtool::tree_sync
