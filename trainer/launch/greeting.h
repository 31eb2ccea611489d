// SPDX-License-Identifier: MIT
// How two processes of a run recognise each other before any other traffic, by the channel that
// dtool's sessions have, too (killfiles/channel): a hello and a welcome that prove that both sides
// know the run's token, and an empty frame each way, which no replay can make.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "killfiles/channel/door.h"
#include "trainer/settings/command_line.h"
#include "trainer/settings/experiment.h"

namespace dtool::trainer {

// A secret that only the processes of one run know, and how they prove their knowledge without
// sending it.

/// Environment variable with the name of the token's file. The token itself is not in it, since
/// others can read arguments and environments.
inline constexpr const char* kTokenFileVariable = "DTOOL_TOKEN_FILE";

class RunToken {
 public:
  /// The token of a run without a token: proves only that both sides use the same protocol.
  RunToken() = default;
  explicit RunToken(std::string secret) : secret_(std::move(secret)) {}

  bool is_given() const { return !secret_.empty(); }

  /// HMAC-SHA256 of `words` (each delimited), as 64 hexadecimal digits.
  std::string prove(std::initializer_list<std::string_view> words) const;

  /// The channel's token at the door of that name: a greeting there is of no use at another door,
  /// or for another version of this protocol.
  std::string for_door(std::string_view name) const { return prove({"dtool-trainer 4", name}); }

 private:
  std::string secret_;
};

/// The token from the file in that variable; without it, none. Throws UsageError if the file cannot
/// be read, belongs to another user, or is readable by others.
RunToken read_run_token(const Environment& environment);

/// This process's token, read once.
const RunToken& own_run_token();

/// For workers on this machine only: makes a token if none was given. The workers inherit it.
void make_own_run_token();

/// 32 random hexadecimal digits.
std::string random_nonce();

/// The largest frame that either side may send.
inline constexpr std::size_t kLongestFrame = std::size_t{16} << 20;

/// The listening process does not belong to this run.
struct NotOfThisRun : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A connection whose two sides have proven that they belong to the same run.
struct Call {
  host::Descriptor socket;  ///< non-blocking; nothing was read beyond the greeting
  host::Channel channel;
};

/// Tries to connect until `patience` is over, then greets as the one of that place. Throws
/// std::runtime_error if there is no listener, and NotOfThisRun.
Call call_at(const Endpoint& endpoint, std::string_view door, int place,
             std::chrono::milliseconds patience, const RunToken& token = own_run_token());

// Where a process of a run listens for the others. A stranger gets no answer, and is replaced by
// the next one if too many wait.

/// Sockets that listen on the addresses of `endpoint`. They listen on all addresses if the
/// endpoint's address belongs to another machine, or is a name that only this machine takes for
/// itself. Throws std::system_error, or std::runtime_error if the name has no address.
std::vector<host::Descriptor> listen_at(const Endpoint& endpoint);

/// Sends a frame. The first one lets the caller in: it waits for that, and it is empty.
void say(host::Caller& caller, std::string_view body);

class FrontDoor {
 public:
  /// `guests`: how many may come at the same moment. Throws as listen_at does.
  FrontDoor(const Endpoint& endpoint, std::string_view name, std::size_t guests,
            const RunToken& token = own_run_token());

  std::uint16_t port() const { return door_.port(); }

  /// Watches the door and its guests, and then the callers, too; others may be added.
  host::Watch& watch() { return watch_; }

  /// Those that have proven themselves, and wait for their welcome. Never waits. Call it when the
  /// watch's descriptor is readable.
  std::vector<host::Caller> take();
  /// The same where the watch has told that this descriptor is ready.
  std::vector<host::Caller> take(int ready) { return door_.take(ready, host::Door::now()); }
  /// Disconnects strangers that have been here too long.
  void turn() { door_.turn(host::Door::now()); }

 private:
  host::Watch watch_;
  host::Door door_;
};

}  // namespace dtool::trainer
