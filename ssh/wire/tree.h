// SPDX-License-Identifier: MIT
// Messages between dtool and dtool-host (ssh/wire/protocol.h) about what hosts pass on to each
// other, about a code tree that is copied for a run or deleted, and about what is fetched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ssh/wire/protocol.h"

namespace dtool::host {

/// The bits of a file's mode that are sent and taken. A set-user-id or set-group-id bit would
/// arrive with another owner, in whose name the file would then run.
inline constexpr std::uint32_t kPermissions = 0777;

/// What a host does with a package that hosts pass on to each other.
struct RelayPart {
  /// The host that it gets the package from.
  struct Parent {
    std::string address;  ///< numeric
    std::uint16_t port = 0;
    Hidden secret;  ///< this host proves to it that it knows this
    std::uint64_t size = 0;
    std::string sha256;  ///< the SHA-256 of the sealed bytes, in hex

    void fields(auto visit) { visit(address, port, secret, size, sha256); }
  };
  Hidden key;     ///< key that seals the package
  Hidden secret;  ///< the secret for the hosts that this one serves; empty: it serves none
  std::optional<Parent> parent;  ///< nothing: the package follows the request
  std::int64_t serves_s = 600;   ///< how long it serves the others once it has the last package
  std::int64_t number = 0;       ///< the package's number, for the hosts that ask for it

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

/// Sent by a host that passes a package on while it receives it.
struct TreeNews {
  static constexpr Kind kKind = Kind::tree_news;
  bool listens = false;     ///< listens from now on; without an address it never will
  std::string address;      ///< the address where other hosts find it
  std::uint16_t port = 0;   ///< the port where other hosts find it
  std::uint64_t bytes = 0;  ///< received from another host so far

  void fields(auto visit) { visit(listens, address, port, bytes); }
};

/// In a package: names of files. Before a change of a tree (TreeRequest) the files that it no
/// longer has, and for FreezeRequest all files.
struct Names {
  static constexpr Kind kKind = Kind::names;
  std::vector<std::string> names;

  void fields(auto visit) { visit(names); }
};

/// Make the run a copy of a tree that is not sent, since the folder is the launcher's own. The
/// tree's Names follow as a package.
struct FreezeRequest {
  static constexpr Kind kKind = Kind::freeze_request;
  std::string folder;
  std::string digest;  ///< SHA-256, in hex, of all files' facts: what is copied must be this
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

/// What dtool keeps on a host for later runs; some of it is deleted if that is asked for.
struct KeptRequest {
  static constexpr Kind kKind = Kind::kept_request;
  bool deletes = false;       ///< delete what nothing uses and nothing has used for `unused_s`
  std::int64_t unused_s = 0;  ///< not below kLeastUnused

  void fields(auto visit) { visit(deletes, unused_s); }
};

/// A run that is being made ready may use what was used so short a time ago, in seconds.
inline constexpr std::int64_t kLeastUnused = 3600;

struct KeptThing {
  std::string kind;  ///< environment, trainer, dtool_host, packages, code, copy or run_tree
  std::string path;
  std::uint64_t bytes = 0;    ///< on the disk; a file with several names counts in parts
  std::int64_t unused_s = 0;  ///< seconds since it was used last
  std::string used_by = {};   ///< the run or program that uses it now; empty: there is none
  bool is_deleted = false;

  void fields(auto visit) { visit(kind, path, bytes, unused_s, used_by, is_deleted); }
};

struct KeptReply {
  static constexpr Kind kKind = Kind::kept_reply;
  std::vector<KeptThing> things;

  void fields(auto visit) { visit(things); }
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
  std::uint64_t inode = 0;  ///< the folder's inode; hosts with another one do not share it
  std::string host = {};    ///< its identity, as identify_host() writes it
  std::optional<std::int64_t> holder;  ///< another host, which has made the mark in this folder

  void fields(auto visit) { visit(inode, host, holder); }
};

}  // namespace dtool::host
