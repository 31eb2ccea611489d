// SPDX-License-Identifier: MIT
// Messages between dtool and dtool-host (ssh/wire/protocol.h) about a code tree that is sent. What
// a host lacks comes in parcels (ssh/wire/copy.h) and lies aside until it is put in its place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ssh/wire/copy.h"
#include "ssh/wire/protocol.h"
#include "ssh/wire/tree.h"

namespace dtool::host {

/// Lets a host recognise the very folder that is sent, if it can see it.
struct TreeRoot {
  std::string boot;  ///< the boot id of the launcher's machine
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t file_system = 0;  ///< the file system's type, as statfs has it
  std::string first;              ///< the tree's first file,
  /// The first file's identity as the host would see it if it is the same file.
  std::string first_identity;
  /// A random mark that the launcher has written there; empty: not yet. The numbers alone may agree
  /// by chance, and prove nothing.
  std::string mark;

  void fields(auto visit) { visit(boot, device, inode, file_system, first, first_identity, mark); }
};

/// Report how much of a code tree a folder has, and put the guessed change in its place that may
/// follow, if the folder has its basis: a package as of a parcel, which begins with the Names of
/// files that the tree no longer has.
struct TreeRequest {
  static constexpr Kind kKind = Kind::tree_request;
  std::string folder;  ///< absolute, or from `~/`; made where it is missing
  std::string tree;    ///< its fingerprint
  TreeRoot root;
  std::string push;  ///< hosts of the push that share the folder recognise each other by this; or
                     ///< empty
  std::int64_t host = 0;       ///< its number in the push
  std::string aside;           ///< the folder in it to which parcels would be brought
  std::optional<OwnTree> own;  ///< once the tree is whole here, make the run a copy of it

  // About the package:
  bool has_package = false;
  bool is_compressed = false;
  std::string basis;                  ///< the tree that the package builds on; empty: none
  bool refuses_foreign = false;       ///< refuse files that have names of the tree, are not from
                                      ///< dtool, and differ
  std::int64_t patience_ms = 30'000;  ///< how long to wait for more bytes of the package

  void fields(auto visit) {
    visit(folder, tree, root, push, host, aside, own, has_package, is_compressed, basis,
          refuses_foreign, patience_ms);
  }
};

/// Put a code tree in its place if all of it is there, aside or in the folder; else report what is
/// lacking. The tree's listing, whose SHA-256 is the fingerprint, lies aside, too.
struct PlaceRequest {
  static constexpr Kind kKind = Kind::place_request;
  std::string folder;  ///< absolute, or from `~/`
  std::string tree;    ///< its fingerprint
  /// A tree: files that have been in the folder since that one was whole there, and are listed as
  /// they are, have the content that is listed. Empty: their content is read.
  std::string basis;
  bool refuses_foreign = false;  ///< the same as in TreeRequest
  std::optional<OwnTree> own;    ///< make the run a copy of the tree
  CopyPlace parcels;             ///< the place of the last round's parcels: none is taken meanwhile

  void fields(auto visit) { visit(folder, tree, basis, refuses_foreign, own, parcels); }
};

struct PlaceReply {
  static constexpr Kind kKind = Kind::place_reply;
  bool is_whole = false;
  std::int64_t removed = 0;        ///< files that the tree no longer has
  bool lacks_listing = false;      ///< nothing else is known then
  std::vector<EntryRun> lacks;     ///< entries of the listing
  std::vector<CopyPart> parts;     ///< the lacking entries of which a part is there
  std::int64_t foreign = 0;        ///< files that dtool did not put there, or that were changed
                                   ///< since, and differ from the tree's: nothing is done
  std::vector<std::string> first;  ///< names of the first few
  std::string path;                ///< the path of the folder

  void fields(auto visit) {
    visit(is_whole, removed, lacks_listing, lacks, parts, foreign, first, path);
  }
};

/// How much of a tree a folder has. If none of is_same_folder, is_whole, is_empty, basis, holder
/// and placed is set, the content is unknown.
struct TreeReply {
  static constexpr Kind kKind = Kind::tree_reply;
  bool is_same_folder = false;         ///< it is the tree's own folder, as far as TreeRoot tells
  bool is_whole = false;               ///< it has the whole tree, unchanged since it was sent
  bool is_empty = false;               ///< it is empty
  std::string basis;                   ///< an earlier tree that it has whole and unchanged
  std::optional<std::int64_t> holder;  ///< another host of the push that is handling the folder
  std::optional<PlaceReply> placed;    ///< set if the folder had the package's basis
  bool has_begun = false;              ///< some of what an interrupted push sent lies aside
  bool reads_zstd = false;             ///< a package may be compressed

  void fields(auto visit) {
    visit(is_same_folder, is_whole, is_empty, basis, holder, placed, has_begun, reads_zstd);
  }
};

}  // namespace dtool::host
