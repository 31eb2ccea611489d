// SPDX-License-Identifier: MIT
// Takes the parcels of what `dtool copy` sends, one after another. A file grows aside, parcel by
// parcel, and goes to its place when its SHA-256 is proven. Parcels that hosts pass on are unpacked
// while the next one comes, and are served to others meanwhile.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ssh/host/frame_input.h"
#include "ssh/host/tree/copy_folder.h"
#include "ssh/host/tree/package_server.h"
#include "ssh/wire/copy.h"
#include "ssh/wire/tree.h"

namespace dtool::host {

/// All that a package has brought.
struct Taken {
  std::vector<std::string> names;   ///< the Names with which it begins
  std::vector<CopyEntry> entries;   ///< the entries with their SHA-256
  std::vector<std::string> spoilt;  ///< files whose SHA-256 is wrong: they are deleted
};

/// Takes a package as of a parcel into a folder of its own. Throws Refused, or BadMessage.
Taken take_package(CopyFolder& folder, PackageReader reader);

class ParcelTaker {
 public:
  using Tell = std::function<void(const TreeNews&)>;

  /// `tell` is called with news for the launcher before the reply, if hosts pass the parcel on.
  /// Throws Refused (ssh/host/tree/tree_folder.h) if something of this parcel, or of the one
  /// before, cannot be written.
  ParcelReply take(const ParcelRequest& request, FrameInput& input, const Tell& tell);
  /// Waits until the last parcel is unpacked. Other hosts are still served what they have begun.
  /// Throws like take().
  void end();

 private:
  using Names = std::vector<std::string>;

  ParcelReply take_from_launcher(const ParcelRequest& request, FrameInput& input);
  ParcelReply pass_on(const ParcelRequest& request, FrameInput& input, const Tell& tell);
  void unpack(const ParcelRequest& request, PassedOn& parcel);
  void settle();
  void keep(std::int64_t number);

  std::string place_;  ///< the place of the last request: the folder, the copy and its round
  /// The copy's folder while something is received or unpacked.
  std::unique_ptr<CopyFolder> folder_;
  std::optional<PackageServer> server_;  ///< the server of what hosts pass on
  std::deque<std::int64_t> served_;      ///< the numbers of the last parcels
  std::unique_ptr<PassedOn> parcel_;     ///< the parcel that is unpacked
  /// The unpacking of the last parcel; gives the names of spoilt files.
  std::future<Names> unpacking_;
  Names spoilt_;  ///< the names of spoilt files that no reply has named yet
};

}  // namespace dtool::host
