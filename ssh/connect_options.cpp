// SPDX-License-Identifier: MIT
#include "ssh/connect_options.h"

namespace dtool::ssh {

void SilentHosts::note_answer(const Host& host) {
  answered_.insert(to_string(host));
}

void SilentHosts::note_failure(const Host& host, const HostError& error) {
  const std::string name = to_string(host);
  if (error.failure() == Failure::connect_timed_out && !answered_.contains(name))
    silent_.try_emplace(name, error);
}

std::optional<HostError> SilentHosts::find(const Host& host) const {
  const auto found = silent_.find(to_string(host));
  return found == silent_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace dtool::ssh
