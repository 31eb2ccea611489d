// The code tree to every host, and what an earlier push left there that the tree no longer has.
//
// On each host dtool keeps a list of the files that it put into a folder, in `~/.dtool/trees`. It
// deletes nothing that is not in that list, nothing through a link, and nothing outside the folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ssh/remote.h"
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

/// Is told how a push goes, on the thread that called push().
struct PushListener {
  virtual ~PushListener() = default;
  /// Bytes of files that were sent to the host so far, unchanged ones not counted.
  virtual void on_bytes(std::size_t /*host*/, std::uint64_t /*bytes*/) {}
  /// The host is done, or has failed; comes once for each.
  virtual void on_result(std::size_t /*host*/, const ssh::HostResult& /*result*/,
                         const Pushed& /*pushed*/) {}
  /// The first SIGINT or SIGTERM came.
  virtual void on_interrupt(const std::vector<std::size_t>& /*running*/) {}
};

/// A push whose hosts each go from step to step without waiting for one another. A listener that
/// has them do other things before it hands on to this what it is told of those that have begun.
struct Pushing : ssh::Listener {
  /// What the host begins with; next_task has what follows.
  virtual ssh::Task first_task(std::size_t host) const = 0;
  /// When all have answered: the results, in the destinations' order.
  virtual std::vector<ssh::HostResult> results() = 0;
};

/// `hosts` are the Remote's. The timeout in `options` is for each of a host's three steps. Throws
/// std::invalid_argument on a folder that is neither absolute nor from `~/`, and on two
/// destinations on one host. `tree` and `listener` must outlive it.
std::unique_ptr<Pushing> make_push(const std::vector<ssh::Host>& hosts, const Tree& tree,
                                   const std::vector<Destination>& destinations,
                                   PushListener& listener, const ssh::TaskOptions& options);

/// Sends `tree` to all destinations, at most one a host; results in their order. A file of the tree
/// replaces whatever bears its name there, except a folder with something in it that dtool did not
/// send. Nothing is deleted on a host where the sending failed. Where rsync failed, `exit_code` is
/// its exit code and `error` its own words. Throws and options as make_push.
std::vector<ssh::HostResult> push(ssh::Remote& remote, const Tree& tree,
                                  const std::vector<Destination>& destinations,
                                  PushListener& listener, const ssh::RunOptions& options);

/// Differs where any name, size or time of two trees does (FNV-1a of them), so that hosts can tell
/// whether two launchers send the same.
std::string fingerprint(const Tree& tree);

/// First step: makes the folder, notes which files are about to come, and makes way for those that
/// stand where folders were.
ssh::Command prepare_command(const Tree& tree, const std::string& folder,
                             const std::string& fingerprint);

/// What prepare_command found.
enum class Prepared {
  nothing_to_prune,
  to_prune,     ///< after rsync
  same_folder,  ///< it is the tree's own: there is nothing to do at all
};

/// Nothing where it failed; then `result` is given its error and hint.
std::optional<Prepared> read_prepared(ssh::HostResult& result);

/// The answers of a script of this folder's. Nothing where it failed; then `result` is given its
/// error and hint.
std::optional<std::multimap<std::string, std::string>> answers_of(ssh::HostResult& result);

/// Last step, after rsync: deletes what an earlier push sent and the tree no longer has.
ssh::Command prune_command(const Tree& tree, const std::string& folder,
                           const std::string& fingerprint);

/// The number of deleted files. Nothing where it failed; then `result` is given its error and hint.
std::optional<std::size_t> read_pruned(ssh::HostResult& result);

}  // namespace dtool::tree_sync
