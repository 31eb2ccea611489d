// SPDX-License-Identifier: MIT
// dtool-trainer's flags. main parses them for the machine's process, and every worker, started with
// the same arguments, parses them again.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/settings/comm_options.h"

namespace dtool::trainer {

struct Endpoint {
  std::string host;  ///< a name, an IPv4 address, or an IPv6 address without brackets
  std::uint16_t port = 0;

  bool operator==(const Endpoint&) const = default;
};

/// Reads `IP:PORT`, `name:PORT` or `[v6::address]:PORT`. Throws UsageError.
Endpoint parse_endpoint(std::string_view text);

/// The text that `parse_endpoint` reads.
std::string to_string(const Endpoint& endpoint);

/// Where episodes come from: those that a policy trains on, or those that it is validated on.
enum class EpisodeSet { training, validation };

/// What chooses the actions: a policy that knows the house, two scripts that use only what the
/// agent sees, chance, or a checkpoint's network.
enum class PolicyKind { shortest, wander, doors, random, checkpoint };

enum class PictureFormat { text, svg, html };

/// The options of `dtool-trainer rollout`.
struct RolloutOptions {
  /// Absent: `checkpoint` if one is named, else `shortest`.
  std::optional<PolicyKind> policy;
  EpisodeSet set = EpisodeSet::validation;
  /// Its number in a validation: the first episode of the sampler with this number.
  std::int64_t episode = 0;
  /// The number of episodes to play from `episode` on; absent: one, which is shown.
  std::optional<std::int64_t> episodes;
  std::optional<std::uint64_t> seed;            ///< absent: validation's own; for training houses 0
  std::optional<std::filesystem::path> output;  ///< absent: standard output
  std::optional<PictureFormat> format;          ///< absent: by the name of `output`, else text
  enum class Shown { at_the_end, step_by_step } shown = Shown::at_the_end;
};

/// Throws UsageError: the workload of the experiment has no episodes.
[[noreturn]] void refuse_rollout(const std::filesystem::path& experiment);

enum class Action { train, check, comm, rollout, help, version, self_check };

struct CommandLine {
  Action action = Action::train;
  std::filesystem::path experiment;
  std::optional<int> machine_id;         ///< absent: 0
  std::optional<int> distributed_nodes;  ///< absent: 1
  std::optional<int> nproc_per_node;     ///< absent: `auto`, this machine's number of GPUs, else 1
  /// The endpoint where rank 0 listens; absent: a free port of 127.0.0.1.
  std::optional<Endpoint> listener;
  std::uint64_t seed = 0;
  std::filesystem::path output_dir = "experiment_output";
  std::optional<std::string> checkpoint;  ///< a path, or `latest`
  std::chrono::seconds rendezvous_timeout{300};
  bool shows_defaults = false;            ///< the settings that rank 0 prints include the defaults
  std::optional<CommOptions> comm;        ///< `dtool-trainer comm`
  std::optional<RolloutOptions> rollout;  ///< `dtool-trainer rollout`
};

/// Reads the flags, in their underscored or hyphenated spelling. Throws UsageError.
CommandLine parse_command_line(int argc, char** argv);

/// The text of `--help` for training, `comm` or `rollout`.
std::string usage_text(const CommandLine& options);

}  // namespace dtool::trainer
