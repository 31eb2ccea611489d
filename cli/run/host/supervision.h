// The file `supervise` in a machine's state folder: what its session needs to know to supervise its
// part of a run. The launcher writes it; dtool-host reads it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::host {

/// Whether the run is of the bundled trainer, which learns of failures by itself.
enum class IsTrainer { no, yes };

struct Supervision {
  int place = 0;     ///< this machine's among the run's
  std::string host;  ///< its name for people
  int places = 1;    ///< how many machines the run has
  IsTrainer is_trainer = IsTrainer::no;
  int max_restarts = 0;
  std::chrono::seconds lost_after{60};  ///< of silence; a switch that restarts takes less
  std::string address = {};             ///< where machine 0 hears the others; numeric
  std::uint16_t port = 0;               ///< likewise; only runs of several machines have both
  std::vector<std::string> hosts = {};  ///< all machines' names by place; machine 0 alone has them

  bool operator==(const Supervision&) const = default;
};

/// One `name value` a line.
std::string to_text(const Supervision& supervision);

/// Throws std::runtime_error with a sentence: a name is unknown, missing or there twice, or a value
/// is not what it may be.
Supervision parse_supervision(std::string_view text);

}  // namespace dtool::host
