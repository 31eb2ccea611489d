// SPDX-License-Identifier: MIT
// Sends parcels to hosts: each host takes its own one after another, from here or from another
// host, without waiting for the others.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ssh/remote.h"
#include "ssh/wire/copy.h"
#include "ssh/wire/tree.h"
#include "sync/copy/parcels.h"
#include "sync/relaying.h"
#include "sync/schedule.h"

namespace dtool::tree_sync {

/// At most so many parcels lie in files here, each until its last host has taken it.
inline constexpr std::size_t kMostKept = 16;

/// How long a host waits for the next byte of the parcel: where it has the beginning of a file,
/// that is read here once more before the checksum can follow.
std::chrono::milliseconds patience_for(const CopyList& list, const Parcel& parcel);

/// Where a host takes its parcels to, and what came of it.
struct ParcelHost {
  std::size_t host = 0;  ///< index into Remote::hosts()
  host::CopyPlace place = {};
  ssh::HostResult result = {};
  std::optional<std::size_t> holder = {};  ///< another host that writes into the same folder
  std::vector<std::string> spoilt = {};    ///< files whose SHA-256 was wrong there
  std::uint64_t bytes = 0;                 ///< the bytes of files that it has taken
};

class ParcelRun : public ssh::Events {
 public:
  /// `parcels` as cut_parcels() orders them. All references must outlive it.
  ParcelRun(const CopyList& list, const std::vector<Parcel>& parcels, RunningSums& sums,
            std::vector<ParcelHost>& hosts, Compression compression, ssh::Events& events,
            Relay relay = Relay::where_it_pays, std::size_t most_kept = kMostKept);

  /// What each host does as soon as it has its parcels or has failed, without waiting for others:
  /// `first` gives the first task, or nothing; `then` hears of this and of later ones, and gives
  /// those. The events of the constructor then get no results.
  using First = std::function<std::optional<ssh::Task>(ParcelHost&)>;
  void set_next(First first, ssh::Events& then) {
    first_ = std::move(first);
    then_ = &then;
  }

  /// Takes until all hosts have their parcels or have failed.
  void run(ssh::Remote& remote);
  std::vector<Missed> missed() const { return missed_; }
  /// Parcels that lie here.
  std::size_t kept() const { return packages_.size(); }

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override;
  void on_progress(std::size_t host, const ssh::Transferred& input) override;
  std::optional<ssh::NextTask> next_task(std::size_t host, const ssh::HostResult& result) override;
  void on_result(std::size_t host, const ssh::HostResult& result) override;
  void on_silence(const std::vector<std::size_t>& waiting) override { events_.on_silence(waiting); }
  void on_interrupt(const std::vector<std::size_t>& running) override;

 private:
  struct Slot {
    ParcelHost* host = nullptr;
    std::vector<std::size_t> parcels = {};
    std::size_t at = 0;      ///< the place in `parcels` of the one that it takes
    bool has_begun = false;  ///< the folder is its own
    bool is_sent = false;    ///< the task is about that parcel; else it waits for another host
    bool is_last = false;    ///< the task ends the host's part
    bool is_over = false;    ///< the host does what comes next
    std::uint64_t all = 0;   ///< bytes of its parcels
    host::RelayPart part = {};
  };

  enum class Last { no, yes };

  ssh::Task empty_task(const Slot& slot, Last last) const;
  std::optional<ssh::NextTask> end_part(Slot& slot);
  std::optional<ssh::NextTask> go_on(Slot& slot);
  std::optional<ssh::NextTask> after_parcel(Slot& slot);
  ssh::Task parcel_task(const Slot& slot);
  void pack(std::size_t place);
  Relaying* relaying_of(const Slot& slot);
  void note_spoilt(Slot& slot, const std::vector<std::string>& names) const;
  void release(std::size_t parcel);
  bool drop_one();
  void drop(std::size_t parcel);
  void tell_progress(const Slot& slot, double fraction);

  const CopyList& list_;
  const std::vector<Parcel>& parcels_;
  RunningSums& sums_;
  Compression compression_;
  ssh::Events& events_;
  Relay relay_;
  std::size_t most_kept_;
  std::map<std::size_t, Slot> slots_;        ///< the key is the host
  std::vector<std::size_t> wanted_by_;       ///< the number of hosts still to take each parcel
  std::uint64_t relayed_ = 0;                ///< bytes that hosts take of parcels that many want
  std::map<std::size_t, Package> packages_;  ///< the kept packages of parcels that were begun
  Schedule schedule_;
  PackageServers servers_;
  std::map<std::size_t, Relaying> relayings_;  ///< the relaying of each parcel that hosts pass on
  std::vector<Missed> missed_;
  First first_;
  ssh::Events* then_ = nullptr;
};

}  // namespace dtool::tree_sync
