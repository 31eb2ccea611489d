// What a push asks of a host, step by step, and what the answers mean. push.cpp goes through them.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "ssh/remote.h"
#include "sync/listing.h"
#include "sync/package.h"
#include "sync/relay/relaying.h"
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

/// First step: makes the folder where it is missing, and looks what of the tree is there. `push` is
/// this push's name and the host's: hosts that share the folder know each other by it. Empty where
/// there is one host. A `guess`, which may be null, goes along; the host unpacks it at once where
/// it has the tree from which that leads.
ssh::Command ask_command(const Tree& tree, const Place& place, const std::string& push,
                         const Package* guess = nullptr);

/// What ask_command found.
struct Asked {
  enum class State {
    same_folder,  ///< it is the tree's own: there is nothing to do at all
    whole,        ///< all of the tree, untouched since it was sent
    known,        ///< an earlier tree, likewise
    guessed,      ///< what the guess leads from: read_unpacked tells what became of it
    empty,
    unknown,  ///< anything else
    shared,   ///< another host of this push has the same folder in hand
  };
  State state = State::unknown;
  std::string basis = {};                       ///< the known tree's fingerprint
  std::optional<Compression> compression = {};  ///< of packages; nothing: it cannot unpack any
  bool has_gzip = false;
  bool has_openssl = false;                ///< it can open a sealed package
  bool can_serve = false;                  ///< it has what hands a package to other hosts
  std::optional<std::size_t> holder = {};  ///< of a shared folder: that host's index
  std::string lock = {};  ///< where the host keeps what it knows of the folder: a path there
};

/// Nothing where it failed; then `result` is given its error and hint.
std::optional<Asked> read_asked(ssh::HostResult& result);

/// Unpacks what leads to the tree from what is there, and lets the files take their places. `part`
/// is for a sealed package.
ssh::Command unpack_command(const Package& package, const Asked& host, const Place& place,
                            const RelayPart& part = {});

/// What became of a package.
struct Unpacked {
  bool is_whole = false;    ///< otherwise rsync has to do it
  std::size_t removed = 0;  ///< files that the tree no longer has
  std::string reason = {};  ///< why it is not whole
};

/// Nothing where the host failed and rsync would be of no help; then `result` has the error.
std::optional<Unpacked> read_unpacked(ssh::HostResult& result);

/// Where nothing is to be sent after all: takes away what ask_command left.
ssh::Command leave_command(const Place& place);

/// Has the host fail: `count` files are there that dtool did not put there and that differ from the
/// tree's; `first` names a few of them.
void set_foreign(ssh::HostResult& result, const std::string& folder, std::size_t count,
                 const std::vector<std::string>& first);

/// The names of a tree's files on their way to hosts, made once.
class Names {
 public:
  explicit Names(const Tree& tree) : tree_(tree) {}
  const std::shared_ptr<const ssh::ProgramOutput>& stream(const Asked& host);

 private:
  const Tree& tree_;
  std::map<bool, std::shared_ptr<const ssh::ProgramOutput>> streams_;  ///< by whether compressed
};

/// Before rsync: notes which files are about to come, and makes way for those that stand where
/// folders were. Under ForeignFiles::look it does nothing where there are such files.
ssh::Command prepare_command(Names& names, const Asked& host, const Place& place);

/// What prepare_command found.
struct Prepared {
  std::string lock;          ///< behind which rsync has to run; empty where nothing was done yet
  std::string foreign = {};  ///< then: the file there that names the files dtool did not put there
};

/// Nothing where it failed; then `result` is given its error and hint.
std::optional<Prepared> read_prepared(ssh::HostResult& result);

/// After rsync: deletes what an earlier push sent and the tree no longer has, and notes that the
/// tree is whole.
ssh::Command prune_command(Names& names, const Asked& host, const Place& place);

/// The number of deleted files. Nothing where it failed; then `result` is given its error and hint.
std::optional<std::size_t> read_pruned(ssh::HostResult& result);

}  // namespace dtool::tree_sync
