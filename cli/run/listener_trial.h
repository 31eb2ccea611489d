// Whether every host reaches the place where rank 0 will listen, tried and not guessed; and, in the
// same round, how far its clock is from the launcher's.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// Of one host.
struct TrialOfHost {
  std::string interface;               ///< by which it goes; empty: not known
  bool reached = false;                ///< it read what machine 0 said there
  std::string fault;                   ///< why not; empty if nothing was tried
  std::optional<double> clock_offset;  ///< seconds ahead of the launcher's clock
  double clock_uncertainty = 0;        ///< seconds: half of the round trip
};

/// What came of it.
struct ListenerTrial {
  std::string address;
  std::uint16_t port = 0;
  bool listened = false;
  std::string fault;  ///< why machine 0 did not listen, where it should have
  std::string hint;
  std::vector<TrialOfHost> hosts;  ///< one a host of the remote
};

/// What to try.
struct TrialPlan {
  std::string address;  ///< of machine 0; empty: clocks alone
  std::uint16_t port = 0;
  std::vector<std::size_t> hosts;    ///< those that answered
  std::chrono::seconds listens{60};  ///< at most, should dtool be killed meanwhile
};

/// Lets machine 0 listen, the others connect to it, and machine 0 end.
ListenerTrial try_listener(Console& console, ssh::Remote& remote, const TrialPlan& plan);

}  // namespace dtool::cli
