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

#include "ssh/host/frames.h"
#include "ssh/host/messages/copy.h"
#include "ssh/host/messages/tree.h"
#include "sync/copy/host/copy_folder.h"
#include "sync/relay/host/package_server.h"
#include "sync/relay/host/passed_on.h"

namespace dtool::host {

class ParcelTaker {
 public:
  using Tell = std::function<void(const TreeNews&)>;

  /// `server` serves the parcels on to other hosts; it is made with the first one that hosts pass
  /// on. It must outlive this.
  explicit ParcelTaker(std::optional<PackageServer>& server) : server_(server) {}

  /// `tell` is called with news for the launcher before the reply, if hosts pass the parcel on.
  /// Throws Refused (sync/host/tree_folder.h) if something of this parcel, or of the one before,
  /// cannot be written.
  ParcelReply take(const ParcelRequest& request, FrameInput& input, const Tell& tell);
  /// Waits until the last parcel is unpacked. Throws like take().
  void settle();

 private:
  using Names = std::vector<std::string>;

  ParcelReply take_from_launcher(const ParcelRequest& request, FrameInput& input);
  ParcelReply pass_on(const ParcelRequest& request, FrameInput& input, const Tell& tell);
  void unpack(const ParcelRequest& request, PassedOn& parcel);
  void keep(std::int64_t number);

  std::string place_;                   ///< of the last request: the folder, the copy and its round
  std::unique_ptr<CopyFolder> folder_;  ///< while something is received or unpacked
  std::optional<PackageServer>& server_;
  std::deque<std::int64_t> served_;   ///< the numbers of the last parcels
  std::unique_ptr<PassedOn> parcel_;  ///< that is unpacked
  std::future<Names> unpacking_;      ///< of the last parcel; gives the names of spoilt files
  Names spoilt_;                      ///< that no reply has named yet
};

}  // namespace dtool::host
