// SPDX-License-Identifier: MIT
// Rank 0 looks into the folder, while the other ranks wait in the reader of the next checkpoint.
#include "trainer/objectnav/agent/follow_checkpoints.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>

#include "trainer/data/data_files.h"
#include "trainer/objectnav/agent/actor_critic.h"
#include "trainer/objectnav/agent/sample_actions.h"
#include "trainer/objectnav/agent/validation.h"
#include "trainer/report/metrics.h"
#include "trainer/report/progress_log.h"
#include "trainer/settings/environment.h"
#include "trainer/settings/usage_error.h"
#include "trainer/training/checkpoint_folder.h"
#include "trainer/training/checkpoint_reader.h"
#include "trainer/training/snapshot.h"

namespace dtool::trainer {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLookEvery = std::chrono::seconds(1);

double seconds_since_1970(std::filesystem::file_time_type time) {
  const auto as_system_time = std::chrono::file_clock::to_sys(time);
  return std::chrono::duration<double>(as_system_time.time_since_epoch()).count();
}

/// A checkpoint that rank 0 has opened, so that its writer may delete it.
struct Found {
  KeptCheckpoint checkpoint;
  CheckpointFile file;
};

/// The checkpoints of a folder that have not been asked for yet; rank 0's.
class NewCheckpoints {
 public:
  explicit NewCheckpoints(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Waits for one; absent if none comes within `patience`.
  std::optional<Found> await_next(std::chrono::seconds patience) {
    for (const auto deadline = Clock::now() + patience;;) {
      if (auto found = next()) return found;
      if (Clock::now() > deadline) return std::nullopt;
      std::this_thread::sleep_for(kLookEvery);
    }
  }

 private:
  /// The one of the fewest steps. One that was written again counts as new.
  std::optional<Found> next() {
    for (const KeptCheckpoint& each : list_checkpoints(folder_)) {
      const auto seen = seen_.find(each.step);
      if (seen != seen_.end() && seen->second == each.written) continue;
      seen_[each.step] = each.written;
      try {
        return Found{each, CheckpointFile(each.file)};
      } catch (const std::system_error&) {
        if (std::filesystem::exists(each.file)) throw;
      }
    }
    return std::nullopt;
  }

  std::filesystem::path folder_;
  std::map<std::int64_t, std::filesystem::file_time_type> seen_;
};

/// Where a run has its outputs; the machines may know it by different names.
std::filesystem::path followed_folder(const std::string& follow) {
  auto folder = expand_path("validation.follow", follow, process_environment);
  if (std::filesystem::is_directory(folder)) return folder;
  throw UsageError(fmt::format("validation.follow: there is no folder {}", folder.string()),
                   "it is the output folder of the run to follow, which this machine has to see");
}

/// Rank 0's part of the work.
struct Follower {
  Follower(const Run& run, const ObjectNavSettings& settings)
      : folder(followed_folder(settings.validation.follow)),
        checkpoints(folder / "checkpoints"),
        theirs(folder / "validation.jsonl") {
    std::filesystem::create_directories(run.options.output_dir);
    ours.emplace(run.options.output_dir,
                 run.experiment.log_tensorboard ? TensorBoard::on : TensorBoard::off,
                 RunStart{run.options.seed, run.group.size, "", 0, 0});
    ours->note(fmt::format("validating the checkpoints in {}", (folder / "checkpoints").string()));
  }

  void tell(const KeptCheckpoint& checkpoint, double done, const Scores& scores) {
    MetricsLine line = {{"event", "validation"},
                        {"time", seconds_since_1970(checkpoint.written)},
                        {"step", checkpoint.step}};
    line.insert(line.end(), scores.begin(), scores.end());
    theirs.append(line);
    ours->validation({0, 0, checkpoint.step, done}, scores);
  }

  std::filesystem::path folder;
  NewCheckpoints checkpoints;
  MetricsFile theirs;
  std::optional<ProgressLog> ours;
};

}  // namespace

void follow_checkpoints(const Run& run, const ObjectNavSettings& settings) {
  const Group& group = run.group;
  const std::int64_t last_step = settings.pipeline.steps;
  ActorCritic policy({settings.embedding, settings.hidden}, group.device);
  std::optional<Follower> follower;
  if (group.rank == 0) follower.emplace(run, settings);
  std::int64_t step = 0;
  Scores scores;
  for (int checkpoint = 1; step < last_step; ++checkpoint) {
    std::optional<Found> found;
    if (follower) found = follower->checkpoints.await_next(settings.validation.patience);
    CheckpointReader reader(group, fmt::format("followed checkpoint {}", checkpoint),
                            found ? std::move(found->file) : CheckpointFile());
    if (!reader.has_file()) {
      throw RunFailed(fmt::format("no new checkpoint in {} for {} s, the last is of step {}",
                                  settings.validation.follow, settings.validation.patience.count(),
                                  step));
    }
    step = restore_model(reader, policy).steps;
    scores = validate(settings.environment, settings.validation, policy, group);
    const double done = static_cast<double>(step) / static_cast<double>(last_step);
    if (follower) follower->tell(found->checkpoint, done, scores);
  }
  if (follower) follower->ours->finish(scores);
}

namespace {

/// One agent, with its memory of the episode.
struct Agent {
  ActorCritic network;
  std::uint64_t seed;
  at::Tensor memory = at::zeros({1, network.memory_size()});
  at::Tensor observation = at::empty({1, kObservationBytes}, at::kByte);

  Move choose(const Scene& scene) {
    const c10::NoGradGuard no_gradients;
    observe(scene.house, scene.episode, observation.data_ptr<std::uint8_t>());
    const at::Tensor keep = at::full({1}, scene.episode.steps == 0 ? 0.0F : 1.0F);
    const PolicyOutput seen = network.act(observation, memory, keep);
    memory = seen.memory;
    std::uint8_t action = 0;
    float log_prob = 0;
    sample_actions(seen.logits, seed, scene.sampler, scene.episode.steps, &action, &log_prob);
    return static_cast<Move>(action);
  }
};

}  // namespace

CheckpointPolicy read_policy(const ObjectNavSettings& settings, const CommandLine& options,
                             std::uint64_t seed) {
  const auto file = checkpoint_of(options);
  if (file.empty()) {
    throw UsageError(fmt::format("--checkpoint auto: none in {}", checkpoints_of(options).string()),
                     "--output_dir names the folder that the training was given");
  }
  const auto agent = std::make_shared<Agent>(
      Agent{ActorCritic({settings.embedding, settings.hidden}, at::kCPU), seed});
  const Group alone;
  CheckpointReader reader(alone, "", CheckpointFile(file));
  restore_model(reader, agent->network);
  return {[agent](const Scene& scene) { return agent->choose(scene); }, file.string()};
}

}  // namespace dtool::trainer
