// SPDX-License-Identifier: MIT
// Messages between dtool and dtool-host (ssh/wire/protocol.h) about the files and folders that
// `dtool copy` brings to hosts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ssh/wire/protocol.h"
#include "ssh/wire/tree.h"

namespace dtool::host {

/// What all requests of one `dtool copy` to a host share.
struct CopyPlace {
  std::string folder;      ///< absolute, or from `~/`
  std::string copy;        ///< name of the copy
  std::int64_t round = 0;  ///< the round of the copy: each begins with the question what is lacking
  std::int64_t host = 0;   ///< its number in the copy
  std::string launcher;    ///< the process that copies, in words that hosts only compare
  std::string takes_over;  ///< the process whose copy to the folder has ended; empty: none
  bool refuses_foreign = false;  ///< replace no file or link that did not come by a copy, or was
                                 ///< touched since, and differs

  void fields(auto visit) {
    visit(folder, copy, round, host, launcher, takes_over, refuses_foreign);
  }
};

/// A file, a link, or a folder (its name ends with a slash) that is copied.
struct CopyEntry {
  static constexpr Kind kKind = Kind::copy_entry;
  std::string name;  ///< the name below the folder
  std::uint64_t mode = 0;
  std::int64_t seconds = 0;  ///< the time of its last change
  std::int64_t nanoseconds = 0;
  std::string target;  ///< the target of a link; else empty
  std::uint64_t size = 0;
  std::string sha256;  ///< the SHA-256 of a file, in hex; empty: not known yet

  void fields(auto visit) { visit(name, mode, seconds, nanoseconds, target, size, sha256); }
};

/// How much of the listing that follows (CopyEntries in a package, sorted by name) does a folder
/// have? Nothing is written there, unless `settles` is set and nothing is lacking: then modes and
/// times are set, and what the copy left aside is deleted.
struct CopyRequest {
  static constexpr Kind kKind = Kind::copy_request;
  CopyPlace place;
  bool settles = false;
  bool is_compressed = false;  ///< the listing
  std::int64_t patience_ms = 300'000;

  void fields(auto visit) { visit(place, settles, is_compressed, patience_ms); }
};

/// Places in a listing that follow each other.
struct EntryRun {
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  void fields(auto visit) { visit(first, count); }
};

/// A file of which a part came before.
struct CopyPart {
  std::uint64_t entry = 0;  ///< its place in the listing
  std::uint64_t bytes = 0;

  void fields(auto visit) { visit(entry, bytes); }
};

struct CopyReply {
  static constexpr Kind kKind = Kind::copy_reply;
  std::vector<EntryRun> lacks;       ///< entries that are not there
  std::vector<CopyPart> parts;       ///< the lacking entries of which a part is there
  std::vector<EntryRun> unsure;      ///< files of the same size and another time, with no sha256
  bool is_unsettled = false;         ///< modes or times differ, or something is left aside
  std::vector<std::string> blocked;  ///< why some names cannot be written; the first few
  std::string blocked_hint;          ///< the help against the first of these
  std::uint64_t needed = 0;          ///< bytes on disk for what is lacking
  std::uint64_t free = 0;            ///< bytes that this user may still write there
  std::string folder;                ///< the folder's path
  std::string owner;  ///< launcher of another copy that is writing there, as it said; or empty
  bool reads_zstd = false;
  /// `/data belongs to ann`: somebody else who decides what is in the folder; or empty. Files there
  /// count as lacking or unsure unless their SHA-256 is right.
  std::string stranger;

  void fields(auto visit) {
    visit(lacks, parts, unsure, is_unsettled, blocked, blocked_hint, needed, free, folder, owner,
          reads_zstd, stranger);
  }
};

/// Take a part of what is lacking, at most some hundred megabytes. A package follows, or comes from
/// another host: for each range of a file a CopyPiece, its bytes in frames of Kind::package_bytes,
/// and behind the file's last range a CopySum. Folders and links have no bytes. One that hosts pass
/// on is unpacked after the reply, while the next one comes.
struct ParcelRequest {
  static constexpr Kind kKind = Kind::parcel_request;
  CopyPlace place;
  bool is_compressed = false;
  std::int64_t patience_ms = 300'000;
  std::optional<RelayPart> relay;
  bool is_last = false;  ///< the reply comes when all parcels are unpacked, and no host is served

  void fields(auto visit) { visit(place, is_compressed, patience_ms, relay, is_last); }
};

struct CopyPiece {
  static constexpr Kind kKind = Kind::copy_piece;
  CopyEntry entry;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  void fields(auto visit) { visit(entry, offset, bytes); }
};

struct CopySum {
  static constexpr Kind kKind = Kind::copy_sum;
  std::string sha256;  ///< the SHA-256 of the whole file, in hex

  void fields(auto visit) { visit(sha256); }
};

struct ParcelReply {
  static constexpr Kind kKind = Kind::parcel_reply;
  std::optional<std::int64_t> holder;  ///< another host of the copy that writes into the folder
  std::vector<std::string> spoilt;  ///< files of this parcel, or of the one before, whose SHA-256
                                    ///< was wrong: they are deleted
  std::string missed;               ///< why another host did not send the parcel; or empty
  bool is_spoilt = false;           ///< the other host sent wrong bytes

  void fields(auto visit) { visit(holder, spoilt, missed, is_spoilt); }
};

}  // namespace dtool::host
