// SPDX-License-Identifier: MIT
// The order in which a small record comes onto a disk: after a power loss it is whole or absent,
// never half.
#pragma once

#include <string>
#include <string_view>

namespace dtool::host {

/// What is done with one file at a time; each call throws if it fails. The simulation
/// (tests/simulation) has a disk that forgets what was not flushed.
struct Disk {
  virtual ~Disk() = default;

  /// Opens an empty file.
  virtual void make(const std::string& path) = 0;
  /// Opens a file as it is.
  virtual void open(const std::string& path) = 0;
  virtual void write(const std::string& path, std::string_view content) = 0;
  /// Waits until what was written is on the disk.
  virtual void flush(const std::string& path) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;
};

/// Writes a whole file. Where the disk is full, an older one stays as it is.
void write_whole(Disk& disk, const std::string& path, std::string_view content);

/// The same over the bytes of a file that was made before, `path.new`: a full disk has room for
/// them, and for no others.
void write_reserved(Disk& disk, const std::string& path, std::string_view content);

}  // namespace dtool::host
