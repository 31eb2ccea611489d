// SPDX-License-Identifier: MIT
// A copy of files and folders from this machine to hosts, from the question what each lacks to the
// proof that all is there. cli/copy shows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ssh/remote.h"
#include "ssh/wire/copy.h"
#include "sync/copy/copy_list.h"
#include "sync/copy/parcels.h"
#include "sync/relaying.h"
#include "sync/tree.h"

namespace dtool::tree_sync {

/// One host's part of a copy.
struct CopyHost {
  ssh::HostResult result = {};
  host::CopyReply reply = {};  ///< the last one
  std::uint64_t lacked = 0;    ///< bytes of files that it lacked at the beginning
  /// The number of files, links and folders that it lacked at the beginning.
  std::size_t entries = 0;
  std::uint64_t room = 0;  ///< bytes that they take there until all is in its place
  std::uint64_t sent = 0;  ///< bytes of files that it was sent
  std::optional<std::size_t> same_as = {};  ///< another host that sees the same folder, and was
                                            ///< sent them
};

class Copying {
 public:
  /// `folder` is absolute or begins with `~/`. `launcher` names this process: another copy to the
  /// folder is told it (CopyReply::owner). All arguments must outlive it.
  Copying(ssh::Remote& remote, CopyList& list, std::string folder, std::string launcher,
          ssh::Events& events, Foreign foreign = Foreign::refuse);

  /// Asks every host what it lacks. Nothing is written there.
  void ask();
  const std::vector<CopyHost>& hosts() const { return hosts_; }
  /// On that host the copy that `owner` names has ended without finishing: this one goes on in its
  /// place.
  void take_over(std::size_t host, const std::string& owner) { takes_over_[host] = owner; }

  /// Sends what hosts lack, and asks again for proof; what is still lacking then is sent once more.
  /// Hosts that failed before are left out.
  void send();
  std::vector<Missed> missed() const { return missed_; }
  /// Files that arrived with a wrong SHA-256, and were sent again; each with its host's place.
  const std::vector<std::pair<std::size_t, std::string>>& spoilt() const { return spoilt_; }

 private:
  enum class Settles { no, yes };

  host::CopyPlace place_on(std::size_t host) const;
  void ask(const std::vector<std::size_t>& hosts, Settles settles);
  void ask_with(const std::vector<std::size_t>& hosts, Settles settles, Compression compression);
  void hash_unsure();
  void prove();
  bool send_round();
  std::vector<std::size_t> well(bool (*is_wanted)(const CopyHost&)) const;

  ssh::Remote& remote_;
  CopyList& list_;
  std::string folder_;
  std::string name_;
  std::string launcher_;
  /// The key is the host; the value names the ended copy in whose place this one goes on.
  std::map<std::size_t, std::string> takes_over_;
  ssh::Events& events_;
  Foreign foreign_;
  std::int64_t round_ = 0;
  std::vector<CopyHost> hosts_;
  std::vector<std::size_t> followers_;  ///< this round's hosts that another one's folder serves
  ParcelSizes sizes_;
  RunningSums sums_;
  std::vector<Missed> missed_;
  std::vector<std::pair<std::size_t, std::string>> spoilt_;
};

}  // namespace dtool::tree_sync
