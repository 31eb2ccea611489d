// SPDX-License-Identifier: MIT
// The file `supervise` in a machine's state folder: the settings for supervising its part of a run.
// The launcher writes it; dtool-host reads it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::host {

struct Supervision {
  int place = 0;     ///< this machine's place in the run
  std::string host;  ///< its name for people
  int places = 1;    ///< number of machines in the run
  int max_restarts = 0;
  /// The silence after which a machine is lost; a restarting switch takes less time.
  std::chrono::seconds lost_after{60};
  std::string address = {};  ///< the address where machine 0 listens for the others; numeric
  /// The port where machine 0 listens for the others; only runs of several machines have both.
  std::uint16_t port = 0;
  std::vector<std::string> hosts = {};  ///< all machines' names by place; only machine 0 has them
  std::optional<int> ends_with = {};    ///< the place whose good end is the run's; likewise

  bool operator==(const Supervision&) const = default;
};

/// The time between two signs of life of a machine. It grows with the number of machines, so that
/// machine 0 copes with a thousand.
std::chrono::milliseconds time_between_signs(const Supervision& supervision);

/// One `name value` per line.
std::string to_text(const Supervision& supervision);

/// Throws std::runtime_error with a sentence if a name is unknown, missing or repeated, or a value
/// is invalid.
Supervision parse_supervision(std::string_view text);

/// The run's token, from the file `token` here; nothing if the file is missing or malformed.
std::optional<std::string> read_token();

}  // namespace dtool::host
