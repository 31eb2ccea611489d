// SPDX-License-Identifier: MIT
// Environments that others wrote, in processes of their own: a rank's workers, each with several of
// them. The workload `ppo` learns in them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/environments/protocol.h"
#include "trainer/reinforcement/environments.h"

namespace dtool::trainer {

/// An environment of this rank cannot go on. The message names it by its number among all ranks'
/// environments, with its seed and its worker's last words. (Other ranks know nothing of it.)
struct EnvironmentFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An episode begins with a seed that depends only on (seed, set, number of the environment, number
/// of its episode), or with the generator as the environment's earlier episodes have left it. So it
/// is the same for any number of workers and ranks. A step allocates nothing unless a worker writes
/// or fails.
class ProcessEnvironments : public Environments {
 public:
  /// Starts the processes and begins the first episodes. `workers` is at least 1; more than `count`
  /// are not started. Throws UsageError if the environments cannot be made, and std::system_error
  /// if this machine has no processes or memory for them.
  ProcessEnvironments(const WorkerSettings& settings, EpisodeSet set, std::uint64_t seed,
                      std::int64_t first, int count, int workers);
  ~ProcessEnvironments() override;

  /// What all of the workers have answered.
  const WorkerAnswer& answer() const { return answer_; }
  int workers() const;

  const EnvironmentSpec& spec() const override { return answer_.spec; }
  int count() const override;
  std::map<std::string, std::string> made_of() const override {
    return {{"name", settings_.name},
            {"arguments", settings_.request},
            {"package", answer_.package},
            {"source", answer_.hash}};
  }
  bool steps_meanwhile() const override;
  void observe(std::span<std::uint8_t> observations) const override;
  void begin(int begin, int end, const StepArrays& arrays) override;
  /// A worker that fails is started anew if the settings say so, at most three times in all; then
  /// the step counts as the last of its environments' episodes, a truncated one. Throws
  /// EnvironmentFailed.
  void wait() override;
  /// Each episode is a scene of its own.
  void advance() override;
  EpisodeSums take_sums() override;
  void count_only(std::int64_t each) override;
  bool counted_all() const override;
  /// The numbers of the next episodes.
  std::vector<std::uint8_t> state() const override;
  /// Each begins its next episode.
  GoesOn restore(const std::vector<std::uint8_t>& state) override;

 private:
  struct Slot;
  struct Worker;

  void start(Worker& worker);
  void greet(Worker& worker);
  void ring(Worker& worker, const WorkerRing& rung) const;
  void hear(Worker& worker);
  void hear_all(void (ProcessEnvironments::*what)(Worker&));
  void take(Worker& worker);
  void take_results(const Worker& worker, int begin, int end);
  void copy_observations(const Worker& worker, int begin, int end,
                         const std::vector<std::int64_t>& parts, std::uint8_t* rows) const;
  void check_episode_end(const Worker& worker, int number) const;
  void count_episode(const Worker& worker, int number);
  void give_seed(const Worker& worker, int number) const;
  void restart(Worker& worker, const WorkerFailed& failure);
  bool seeds_every_episode() const;
  std::uint32_t seed_of(int number, std::int64_t episode) const;
  std::string tell(const Worker& worker, const WorkerFailed& failure) const;

  WorkerSettings settings_;
  EpisodeSet set_;
  std::uint64_t seed_;
  std::int64_t first_;
  std::vector<Slot> slots_;
  std::vector<Worker> workers_;
  WorkerAnswer answer_;
  std::vector<std::uint8_t> current_;  ///< [count][observation_bytes]
  StepArrays arrays_;                  ///< of the step that has begun; else empty
  int restarts_ = 0;
};

}  // namespace dtool::trainer
