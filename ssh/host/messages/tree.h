// SPDX-License-Identifier: MIT
// Messages between dtool and dtool-host (ssh/host/protocol.h) about a code tree: sent, passed on,
// copied for a run, deleted; and about what is fetched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ssh/host/protocol.h"

namespace dtool::host {

/// The bits of a file's mode that are sent and taken. A set-user-id or set-group-id bit would
/// arrive with another owner, in whose name the file would then run.
inline constexpr std::uint32_t kPermissions = 0777;

/// Lets a host recognise the very folder that is sent, if it can see it.
struct TreeRoot {
  std::string boot;  ///< of the launcher's machine
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t file_system = 0;  ///< as statfs has it
  std::string first;              ///< the tree's first file,
  std::string first_identity;     ///< and how the host would see it if it is the same file
  /// A random mark that the launcher has written there; empty: not yet. The numbers alone may agree
  /// by chance, and prove nothing.
  std::string mark;

  void fields(auto visit) { visit(boot, device, inode, file_system, first, first_identity, mark); }
};

/// What a host does with a package that hosts pass on to each other.
struct RelayPart {
  /// The host that it gets the package from.
  struct Parent {
    std::string address;  ///< numeric
    std::uint16_t port = 0;
    Hidden secret;  ///< this host proves to it that it knows this
    std::uint64_t size = 0;
    std::string sha256;  ///< of the sealed bytes, in hex

    void fields(auto visit) { visit(address, port, secret, size, sha256); }
  };
  Hidden key;                    ///< key that seals the package
  Hidden secret;                 ///< for the hosts that this one serves; empty: it serves none
  std::optional<Parent> parent;  ///< nothing: the package follows the request
  std::int64_t serves_s = 600;   ///< how long it serves the others once it has the last package
  std::int64_t number = 0;       ///< of the package, for those that ask for it

  void fields(auto visit) { visit(key, secret, parent, serves_s, number); }
};

/// The folder in which a run's processes work: `tree` in the run's folder, a copy of the code.
struct OwnTree {
  std::string run_folder;  ///< must be there; may begin with `~/`
  std::string outputs;     ///< a path from the code folder: the copy has a link to it; or empty
  std::string written;     ///< the folder that keeps what the processes wrote in the copy
  /// The code folder, to which the copy's links lead; empty: it is the folder with the tree. If one
  /// is named, the folder with the tree is dtool's own, and dtool deletes it when it is old.
  std::string code = {};
  /// Where the launcher has the code: links to there lead into the copy.
  std::vector<std::string> roots = {};
  /// Empty folders that the copy has, too, unless the code folder has something of that name.
  std::vector<std::string> folders = {};

  void fields(auto visit) { visit(run_folder, outputs, written, code, roots, folders); }
};

/// Two messages in one. The question (`is_asked` is not set): report how much of a code tree a
/// folder has, and unpack the guessed package that may follow if the folder has its basis. After
/// the answer (`is_asked` is set): unpack the package that follows. A package is a series of frames
/// of Kind::package_bytes, the last one empty.
struct TreeRequest {
  static constexpr Kind kKind = Kind::tree_request;
  std::string folder;  ///< absolute, or from `~/`; made where it is missing
  std::string tree;    ///< its fingerprint
  bool is_asked = false;

  // Only in the question:
  TreeRoot root;
  std::string push;  ///< hosts of the push that share the folder recognise each other by this; or
                     ///< empty
  std::int64_t host = 0;       ///< its number in the push
  std::optional<OwnTree> own;  ///< once the tree is whole here, make the run a copy of it

  // About the package:
  bool has_package = false;
  bool is_compressed = false;
  std::string basis;                   ///< the tree that the package builds on; empty: none
  bool refuses_foreign = false;        ///< refuse files that have names of the tree, are not from
                                       ///< dtool, and differ
  std::int64_t patience_ms = 300'000;  ///< how long to wait for more bytes of the package
  std::optional<RelayPart> relay;      ///< never in the question

  void fields(auto visit) {
    visit(folder, tree, is_asked, root, push, host, own, has_package, is_compressed, basis,
          refuses_foreign, patience_ms, relay);
  }
};

/// Sent by a host that passes a package on while it receives it.
struct TreeNews {
  static constexpr Kind kKind = Kind::tree_news;
  bool listens = false;     ///< listens from now on; without an address it never will
  std::string address;      ///< where other hosts find it,
  std::uint16_t port = 0;   ///< and at which port
  std::uint64_t bytes = 0;  ///< received from another host so far

  void fields(auto visit) { visit(listens, address, port, bytes); }
};

/// The result of unpacking a package.
struct Unpacked {
  bool is_whole = false;
  std::int64_t removed = 0;  ///< files that the tree no longer has
  std::string broken;        ///< why the package is incomplete
  std::int64_t foreign = 0;  ///< files that are not from dtool and differ: nothing was changed
  std::vector<std::string> first;  ///< names of the first few
  std::string folder;              ///< the folder with them
  std::string missed;              ///< why another host did not send the package; or empty
  bool is_spoilt = false;          ///< the other host sent wrong bytes

  void fields(auto visit) {
    visit(is_whole, removed, broken, foreign, first, folder, missed, is_spoilt);
  }
};

/// How much of a tree a folder has. If none of is_same_folder, is_whole, is_empty, basis, holder
/// and unpacked is set, the content is unknown.
struct TreeReply {
  static constexpr Kind kKind = Kind::tree_reply;
  bool is_same_folder = false;         ///< it is the tree's own folder, as far as TreeRoot tells
  bool is_whole = false;               ///< it has the whole tree, unchanged since it was sent
  bool is_empty = false;               ///< it is empty
  std::string basis;                   ///< an earlier tree that it has whole and unchanged
  std::optional<std::int64_t> holder;  ///< another host of the push that is handling the folder
  std::optional<Unpacked> unpacked;    ///< set if the folder had the package's basis
  bool reads_zstd = false;             ///< a package may be compressed

  void fields(auto visit) {
    visit(is_same_folder, is_whole, is_empty, basis, holder, unpacked, reads_zstd);
  }
};

/// In a package: names of files. The files that the tree no longer has or, for PrepareRequest, all
/// files.
struct Names {
  static constexpr Kind kKind = Kind::names;
  std::vector<std::string> names;

  void fields(auto visit) { visit(names); }
};

/// In a package: a file, a link, or a folder (its name ends with a slash). Names are sorted. If
/// `content` is shorter than `size`, the rest follows in frames of Kind::package_bytes.
struct PackageEntry {
  static constexpr Kind kKind = Kind::package_entry;
  std::string name;
  std::uint64_t mode = 0;
  std::int64_t seconds = 0;  ///< of its last change
  std::int64_t nanoseconds = 0;
  std::string target;  ///< of a link; else empty
  std::uint64_t size = 0;
  Hidden content;

  void fields(auto visit) { visit(name, mode, seconds, nanoseconds, target, size, content); }
};

/// Prepare a folder for rsync. The tree's Names follow as a package.
struct PrepareRequest {
  static constexpr Kind kKind = Kind::prepare_request;
  std::string folder;
  std::string tree;
  bool refuses_foreign = false;  ///< do nothing if there are files that are not as dtool sent them
  bool is_compressed = false;    ///< the package
  std::int64_t patience_ms = 300'000;

  void fields(auto visit) { visit(folder, tree, refuses_foreign, is_compressed, patience_ms); }
};

struct PrepareReply {
  static constexpr Kind kKind = Kind::prepare_reply;
  std::string lock;  ///< the file that rsync must lock; it holds the fingerprint
  /// A file that lists those of the tree's files that are there and are not as dtool sent them;
  /// empty: there are none, or they may be overwritten.
  std::string foreign;
  /// The number of files that are not as dtool sent them and would be deleted, and the first names.
  std::int64_t lost = 0;
  std::vector<std::string> first_lost = {};

  void fields(auto visit) { visit(lock, foreign, lost, first_lost); }
};

/// After rsync: delete dtool's files that the tree no longer has, and note whether the tree is
/// complete.
struct PruneRequest {
  static constexpr Kind kKind = Kind::prune_request;
  std::string folder;
  std::string tree;
  std::string digest;     ///< of all files that should exist
  bool was_sent = false;  ///< else nothing was sent, and only the marker of the folder is removed
  std::optional<OwnTree> own;  ///< make the run a copy of the tree

  void fields(auto visit) { visit(folder, tree, digest, was_sent, own); }
};

struct PruneReply {
  static constexpr Kind kKind = Kind::prune_reply;
  std::int64_t removed = 0;

  void fields(auto visit) { visit(removed); }
};

/// Make the run a copy of a tree that is not sent, since the folder is the launcher's own. The
/// tree's Names follow as a package.
struct FreezeRequest {
  static constexpr Kind kKind = Kind::freeze_request;
  std::string folder;
  std::string digest;  ///< of all files, as PruneRequest has it: what is copied must be this
  OwnTree own;
  bool is_compressed = false;  ///< the package
  std::int64_t patience_ms = 300'000;

  void fields(auto visit) { visit(folder, digest, own, is_compressed, patience_ms); }
};

struct FreezeReply {
  static constexpr Kind kKind = Kind::freeze_reply;

  void fields(auto visit) { visit(); }
};

/// Delete a run's own tree, and the run's folder if nothing else is in it.
struct RemoveRequest {
  static constexpr Kind kKind = Kind::remove_request;
  std::string run_id;
  bool with_state = false;  ///< delete the run's folder with all that is in it

  void fields(auto visit) { visit(run_id, with_state); }
};

struct RemoveReply {
  static constexpr Kind kKind = Kind::remove_reply;
  bool had_tree = false;
  std::string
      kept;  ///< a folder with the files that the run's processes wrote in the tree; or empty

  void fields(auto visit) { visit(had_tree, kept); }
};

/// Check whether a folder, or a file in it, can be fetched.
struct LookRequest {
  static constexpr Kind kKind = Kind::look_request;
  std::string folder;
  std::string file;       ///< empty: the folder
  std::string run_id;     ///< first put there what its processes wrote in their tree; or empty
  std::string mark;       ///< hosts that share the folder recognise each other by this; or empty
  std::int64_t host = 0;  ///< its number among those that look for the mark
  bool lets_go = false;   ///< only remove the mark that an earlier request made

  void fields(auto visit) { visit(folder, file, run_id, mark, host, lets_go); }
};

struct LookReply {
  static constexpr Kind kKind = Kind::look_reply;
  std::uint64_t inode = 0;             ///< of the folder; hosts with another one do not share it
  std::string host = {};               ///< its identity, as identify_host() writes it
  std::optional<std::int64_t> holder;  ///< another host, which has made the mark in this folder

  void fields(auto visit) { visit(inode, host, holder); }
};

}  // namespace dtool::host
