// What hosts have, brought to this machine: rsync receives here over dtool's own connections.
// `dtool fetch` calls it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ssh/host/protocol.h"
#include "ssh/remote.h"
#include "sync/rsync.h"

namespace dtool::tree_sync {

/// What is to come from one host, and where to.
struct Pull {
  std::size_t host = 0;  ///< index into Remote::hosts()
  Source source;
  std::string destination;            ///< an absolute folder of this machine, which must be there
  std::chrono::seconds silence{300};  ///< after which the host is given up
  std::optional<std::uint64_t> most = {};  ///< bytes that may come from it
};

/// Is told how a pull goes, on the thread that called pull().
struct PullListener {
  virtual ~PullListener() = default;
  virtual void on_progress(std::size_t /*host*/, const Progress& /*progress*/) {}
  /// The host is done, or has failed; comes once for each.
  virtual void on_result(std::size_t /*host*/, const ssh::HostResult& /*result*/) {}
  /// The first SIGINT or SIGTERM came: nobody is waited for.
  virtual void on_interrupt() {}
};

/// One answer of pull().
struct Pulled {
  ssh::HostResult result;
  Sent sent;  ///< what came this time; where the pull failed, the files that came whole until then
};

/// Brings everything here, at most one pull a host; answers in the order of `pulls`. Where rsync
/// failed, `exit_code` is its exit code and `error` its own words. A file that vanished on the host
/// meanwhile is no failure. An interrupt leaves what has come, and the next pull goes on from
/// there.
std::vector<Pulled> pull(ssh::Remote& remote, const std::vector<Pull>& pulls,
                         PullListener& listener);

/// Asks a host whether the source is there.
ssh::Command look_command(const Source& source);

/// What the source's folder is known by, and the host. Hosts that share the folder answer alike,
/// others do not, as long as their files have different names. Nothing where there is no source;
/// then `result` is given its error and hint.
std::optional<host::LookReply> read_look(ssh::HostResult& result);

/// Gives the result of a pull_program that failed its sentence, rsync's own words, and a hint.
void explain_pull(ssh::HostResult& result);

}  // namespace dtool::tree_sync
