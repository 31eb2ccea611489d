// How the machines of a run agree on one cause of its failure: machine 0's dtool-trainer listens at
// --distributed_ip_and_port, the others' stay connected to it from their start to their end. It
// hears what failed where, decides, and tells all. No LibTorch and no worker is needed for it, so
// it works before the ranks have met and after rank 0 is dead.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "trainer/launch/cause.h"
#include "trainer/launch/endpoint.h"
#include "trainer/launch/run_token.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

/// What a machine is told when it starts, and tells the others.
struct MachineInRun {
  int machine = 0;
  int machines = 1;
  int workers = 1;   ///< on each machine
  std::string host;  ///< this machine's name
  Endpoint listener;
  RunToken token;
  std::chrono::seconds rendezvous_timeout{300};
  std::chrono::seconds silence{60};  ///< a machine that gives no sign of life for so long is lost
};

/// How the run ended, everywhere.
struct Outcome {
  std::optional<Cause> cause;  ///< absent: all went well
};

/// One machine's end of the exchange; used by one thread.
class CauseExchange {
 public:
  virtual ~CauseExchange() = default;

  /// The port where rank 0's store is to listen.
  virtual std::uint16_t store_port() const = 0;

  /// Readable when there is something to do for `work`.
  virtual int descriptor() const = 0;

  /// Call when `descriptor` is readable, and once a second anyhow.
  virtual void work() = 0;

  /// This machine has failed.
  virtual void report(const Cause& cause) = 0;

  /// This machine's workers have all ended well.
  virtual void finish() = 0;

  /// Present once the run is over on all machines.
  virtual const std::optional<Outcome>& outcome() const = 0;

  /// Everybody who can be told has been told.
  virtual bool may_leave() const = 0;
};

/// Machine 0 and this one do not know each other.
struct NotAdmitted : UsageError {
  using UsageError::UsageError;
};

/// Machine 0 listens (where it has others to listen to), and does not wait for them. Another
/// machine connects, which takes as long as machine 0 takes to come. Throws UsageError where the
/// port cannot be had, NotAdmitted, and std::runtime_error where machine 0 does not come within the
/// rendezvous timeout.
std::unique_ptr<CauseExchange> join_exchange(const MachineInRun& self);

/// The two kinds, for join_exchange and for tests.
std::unique_ptr<CauseExchange> make_cause_server(const MachineInRun& self);
std::unique_ptr<CauseExchange> make_cause_client(const MachineInRun& self);

/// Signs of life come so often.
inline constexpr std::chrono::seconds kSignOfLife{1};

/// The name of machine 0's door, for greetings.
inline constexpr const char* kMachineDoor = "machines";

}  // namespace dtool::trainer
