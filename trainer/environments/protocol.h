// SPDX-License-Identifier: MIT
// The words between a rank and its workers, the processes in which environments run
// (docs/simulators.md), and the layout of the memory that they share. ProcessEnvironments speaks
// them. A worker is a program of somebody else's: nothing that it says is believed unchecked.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/reinforcement/environments.h"

namespace dtool::trainer {

/// What becomes of a run whose worker fails.
enum class OnFailure { stop, restart };

/// The environments that a run asks for, and how it treats their processes.
struct WorkerSettings {
  std::string name;     ///< of the environment, for messages
  std::string request;  ///< the JSON object that a worker is told: its environment and arguments
  /// The program of a worker and its arguments; empty: dtool_env.py by `python`.
  std::vector<std::string> command;
  std::string python = "python3";
  std::vector<std::string> scores;  ///< keys of an episode's information, besides the reward
  int workers = 0;                  ///< processes of each rank; 0: by the machine's cores
  bool is_vector = false;           ///< a worker's environments are one, which steps them together
  bool seeds_every_episode = true;  ///< false: in training only the first
  OnFailure on_failure = OnFailure::stop;
  std::chrono::seconds step_timeout{60};
  std::chrono::seconds start_timeout{300};
};

inline constexpr int kEnvironmentProtocol = 1;

/// The first line to a worker that has `count` environments with the numbers from `first` on.
std::string task_line(const WorkerSettings& settings, EpisodeSet set, std::int64_t first,
                      int count);

/// What a worker says of its environments.
struct WorkerAnswer {
  EnvironmentSpec spec;
  std::string package;  ///< name and version of the package that brings the environment; or empty
  std::string hash;     ///< SHA-256 of the imported module's source, or empty

  bool operator==(const WorkerAnswer&) const = default;
};

/// A worker's words end with a line's end; longer ones are not read.
inline constexpr std::size_t kLongestWorkerLine = std::size_t{1} << 18;

/// Reads a worker's answer to its task; the spec's scores are the reward and those of the settings.
/// Throws UsageError: for a spec that is none or goes beyond the limits of docs/simulators.md,
/// and with the worker's own words if it could not make its environments.
WorkerAnswer read_answer(const WorkerSettings& settings, std::string_view line);

/// A worker that is gone, silent too long, or no longer to be believed. `what()` is the end of a
/// sentence about it: "ended with exit code 1".
struct WorkerFailed : std::runtime_error {
  explicit WorkerFailed(const std::string& message, std::string hint_text = "", int number = -1)
      : std::runtime_error(message), hint(std::move(hint_text)), environment(number) {}
  std::string hint;  ///< or empty
  int environment;   ///< counted from the worker's first; -1: not known
};

/// Throws WorkerFailed for a code beyond the part's, or a number that is not finite, in what the
/// worker's environment `number` has observed.
void check_values(const Observed& part, const std::uint8_t* values, int number);

/// What a worker says when it cannot go on. A line that is no error's is quoted.
WorkerFailed read_error(std::string_view line);

/// The answer in words on one line: equal lines for equal answers.
std::string describe(const WorkerAnswer& answer);

/// Where the arrays of a worker's environments are, in bytes from the beginning of its memory. Each
/// begins at a multiple of 64 and has an entry for each environment, one after another.
struct WorkerLayout {
  std::int64_t seeds = 0;                       ///< uint32: the seed of the next episode
  std::int64_t actions = 0;                     ///< float32, `ActionSpec::values()` each
  std::int64_t rewards = 0;                     ///< float32
  std::int64_t endings = 0;                     ///< bytes: values of Ending
  std::int64_t scores = 0;                      ///< float32, all but the reward
  std::vector<std::int64_t> observations;       ///< an array for each part
  std::vector<std::int64_t> last_observations;  ///< an array for each part
  std::int64_t size = 0;                        ///< of the memory
};

WorkerLayout layout_of(const EnvironmentSpec& spec, int count);
/// The second line to a worker.
std::string layout_line(const WorkerLayout& layout);

/// The memory begins with this.
struct WorkerHeader {
  char magic[8] = {'D', 'T', 'O', 'O', 'L', 'E', 'N', 'V'};
  std::uint32_t version = kEnvironmentProtocol;
  std::uint32_t count = 0;  ///< the worker's environments
  std::uint64_t size = 0;   ///< of the memory, in bytes
  /// The environment that the worker is busy with, which it may write: a message names it.
  std::uint32_t at = 0;
  std::uint32_t begins = 0;  ///< 1 while that one begins an episode, which the worker may write
};

/// What rings a worker: 12 bytes. It answers with an empty line, or with an error, and then ends.
struct WorkerRing {
  enum Work : std::uint32_t {
    reset = 1,  ///< begin a new episode
    step = 2
  } work = step;
  std::uint32_t begin = 0;  ///< the first environment, counted from the worker's first
  std::uint32_t end = 0;    ///< one behind the last
};
static_assert(sizeof(WorkerRing) == 12);

}  // namespace dtool::trainer
