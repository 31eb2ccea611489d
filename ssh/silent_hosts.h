// SPDX-License-Identifier: MIT
// Which hosts did not answer in an earlier step of a command of many steps: later steps do not wait
// for them once more. All fleets of that command share one.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "ssh/host.h"
#include "ssh/host_error.h"

namespace dtool::ssh {

class SilentHosts {
 public:
  /// A host that has answered is waited for again whenever its connection is lost.
  void note_answer(const Host& host);
  /// What a connection to the host failed of. Only a host that never answered counts as silent, and
  /// only if the time was up: every other failure comes at once.
  void note_failure(const Host& host, const HostError& error);
  /// That failure, if the host is silent.
  std::optional<HostError> find(const Host& host) const;

 private:
  std::set<std::string> answered_;
  std::map<std::string, HostError> silent_;
};

}  // namespace dtool::ssh
