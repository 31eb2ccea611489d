// SPDX-License-Identifier: MIT
#include "ssh/remote.h"

namespace dtool::ssh {

std::string_view to_string(Failure failure) {
  switch (failure) {
    case Failure::none:
      return "none";
    case Failure::unreachable:
      return "unreachable";
    case Failure::connect_timed_out:
      return "connect_timed_out";
    case Failure::host_key_unknown:
      return "host_key_unknown";
    case Failure::host_key_changed:
      return "host_key_changed";
    case Failure::host_key_revoked:
      return "host_key_revoked";
    case Failure::host_key_unproven:
      return "host_key_unproven";
    case Failure::not_authenticated:
      return "not_authenticated";
    case Failure::timed_out:
      return "timed_out";
    case Failure::connection_lost:
      return "connection_lost";
    case Failure::too_much_output:
      return "too_much_output";
    case Failure::not_started:
      return "not_started";
    case Failure::local_program:
      return "local_program";
    case Failure::host_program:
      return "host_program";
    case Failure::unproven:
      return "unproven";
  }
  return "none";
}

}  // namespace dtool::ssh
