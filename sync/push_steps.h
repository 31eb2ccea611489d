// What a push asks of a host, step by step, as requests to dtool-host, and what the replies mean.
// push.cpp goes through them.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ssh/host_request.h"
#include "ssh/remote.h"
#include "sync/package.h"
#include "sync/tree.h"

namespace dtool::tree_sync {

/// What is done about the files on a host that dtool did not put there: `look` for them, or `leave`
/// them out of account, since all were found to be as the tree's or may be overwritten.
enum class ForeignFiles { look, leave };

/// What all steps on one host are about.
struct Place {
  std::string folder;                  ///< on the host: absolute, or from `~/`
  std::string fingerprint;             ///< Listing's
  std::string digest;                  ///< likewise
  std::chrono::seconds patience{300};  ///< with a package of which not a byte more comes
  ForeignFiles foreign = ForeignFiles::leave;
};

/// This push's name and the host's in it: hosts that share the folder know each other by that. An
/// empty name: there is one host.
struct InPush {
  std::string name;
  std::size_t host = 0;
};

/// First step: makes the folder where it is missing, and looks what of the tree is there. A
/// `guess`, which may be null, goes along; the host unpacks it at once where it has the tree from
/// which that leads.
ssh::Command ask_command(const Tree& tree, const Place& place, const InPush& push,
                         const Package* guess = nullptr);

/// Sends what leads to the tree from what the host has told that it has. `relay` is for a sealed
/// package.
ssh::Command unpack_command(const Package& package, const Place& place,
                            const std::optional<host::RelayPart>& relay = {});

/// The reply to either, behind what news there are. Nothing if it failed; then `result` is given
/// its error and hint.
std::optional<host::TreeReply> read_tree_reply(ssh::HostResult& result);

/// Where nothing is to be sent after all: takes away what ask_command left.
ssh::Command leave_command(const Place& place);

/// Has the host fail: `count` files are there that dtool did not put there and that differ from the
/// tree's; `first` names a few of them.
void set_foreign(ssh::HostResult& result, const std::string& folder, std::size_t count,
                 const std::vector<std::string>& first);

/// Before rsync: notes which files are about to come (`names` has all of the tree's), and makes way
/// for those that stand where folders were. Under ForeignFiles::look it does nothing if there
/// are such files.
ssh::Command prepare_command(std::shared_ptr<const ssh::SharedBytes> names, Compression compression,
                             const Place& place);

/// After rsync: deletes what an earlier push sent and the tree no longer has, and notes that the
/// tree is whole.
ssh::Command prune_command(const Place& place);

/// The one reply in a result. Nothing if the host failed; then `result` is given its error and
/// hint.
template <typename Reply>
std::optional<Reply> reply_in(ssh::HostResult& result) {
  if (result.failure != ssh::Failure::none) return std::nullopt;
  try {
    return ssh::read_reply<Reply>(result);
  } catch (const host::BadMessage& error) {
    result.exit_code = 1;
    result.error = error.what();
    result.hint = error.hint();
    return std::nullopt;
  }
}

}  // namespace dtool::tree_sync
