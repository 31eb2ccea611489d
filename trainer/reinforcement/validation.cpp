// SPDX-License-Identifier: MIT
// Equally many episodes of each environment count, so that short episodes do not count more often
// than long ones.
#include "trainer/reinforcement/validation.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <system_error>
#include <thread>

#include "trainer/data/data_files.h"
#include "trainer/launch/requests.h"
#include "trainer/reinforcement/actions.h"
#include "trainer/report/metrics.h"
#include "trainer/report/progress_log.h"
#include "trainer/settings/experiment.h"
#include "trainer/settings/usage_error.h"
#include "trainer/training/checkpoint_reader.h"
#include "trainer/training/checkpoint_writer.h"
#include "trainer/training/snapshot.h"

namespace dtool::trainer {
namespace {

using Clock = std::chrono::steady_clock;

/// So many episodes at once: an environment takes kilobytes.
constexpr std::int64_t kAtOnce = 1000;

}  // namespace

Validator::Validator(const MakeEnvironments& make, const ValidationSettings& settings,
                     const Policy& policy, const Group& group)
    : make_(make), settings_(settings), policy_(policy), group_(group) {}

/// Once a second the ranks that play (1) meet those that are done (0), so that a request to end is
/// heard soon by all of them. Whether any still plays, and none is to end.
bool Validator::meet(double playing) {
  const std::vector<double> mine = {playing, is_terminated() ? 1.0 : 0.0};
  const std::vector<double> sums = sum_over_ranks(group_, mine);
  next_meeting_ = Clock::now() + std::chrono::seconds(1);
  is_left_ = sums[1] > 0;
  return sums[0] > 0 && !is_left_;
}

EpisodeSums Validator::play(Environments& samplers, std::int64_t first) {
  samplers.count_only(settings_.episodes_of_each());
  const std::int64_t count = samplers.count();
  const auto places = static_cast<std::size_t>(count);
  at::Tensor observations = at::empty({count, policy_.spec().observation_bytes()}, at::kByte);
  at::Tensor memory = at::zeros({count, policy_.memory_size()});
  at::Tensor keep = at::zeros({count});
  std::vector<float> actions(places * static_cast<std::size_t>(policy_.spec().actions.values()));
  std::vector<Ending> endings(places);
  std::vector<float> rewards(places);
  std::vector<float> log_probs(places);
  const std::span bytes(observations.data_ptr<std::uint8_t>(),
                        static_cast<std::size_t>(observations.numel()));
  std::vector<std::uint8_t> last_observations(bytes.size());
  samplers.observe(bytes);
  for (std::int64_t step = 0; !samplers.counted_all(); ++step) {
    if (Clock::now() >= next_meeting_ && !meet(1)) return {};
    if (step / settings_.episodes_of_each() >= settings_.step_limit) {
      throw RunFailed(
          fmt::format("a validation's episodes have not ended after {} steps each: give "
                      "the environment a limit, or raise validation.step_limit",
                      settings_.step_limit));
    }
    const PolicyOutput seen = policy_.act(observations, memory, keep);
    memory = seen.memory;
    sample_actions(seen.logits, policy_.spec().actions, settings_.seed, first, step, actions.data(),
                   log_probs.data());
    samplers.begin(0, samplers.count(), {actions, rewards, endings, bytes, last_observations});
    samplers.wait();
    auto* keeps = keep.data_ptr<float>();
    for (std::size_t i = 0; i < places; ++i) keeps[i] = endings[i] == Ending::none ? 1.0F : 0.0F;
  }
  return samplers.take_sums();
}

Scores Validator::validate() {
  const c10::NoGradGuard no_gradients;
  const std::int64_t all = settings_.environments_in_all();
  const auto first = all * group_.rank / group_.size;
  const auto end = all * (group_.rank + 1) / group_.size;
  const std::vector<std::string>& names = policy_.spec().scores;
  EpisodeSums mine;
  mine.scores.resize(names.size());
  next_meeting_ = Clock::now() + std::chrono::seconds(1);
  is_left_ = false;
  if (kept_) {
    kept_->restore(at_first_);
    mine += play(*kept_, first);
  } else {
    for (auto next = first; next < end && !is_left_; next += kAtOnce) {
      const auto count = static_cast<int>(std::min(kAtOnce, end - next));
      auto samplers = make_(EpisodeSet::validation, settings_.seed, next, count);
      at_first_ = samplers->state();
      if (!at_first_.empty()) samplers->restore(at_first_);  // so does a later validation
      mine += play(*samplers, next);
      if (!at_first_.empty() && count == end - first) kept_ = std::move(samplers);
    }
  }
  while (!is_left_ && meet(0)) {
  }
  if (is_left_) return {};
  std::vector<double> sums = {mine.episodes};
  sums.insert(sums.end(), mine.scores.rbegin(), mine.scores.rend());
  sums = sum_over_ranks(group_, sums);
  Scores scores;
  for (std::size_t i = 1; i < sums.size(); ++i) {
    scores.emplace_back("validation_" + names[names.size() - i], sums[i] / sums[0]);
  }
  return scores;
}

// Rank 0 looks into the folder, while the other ranks wait in the reader of the next checkpoint.

namespace {

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
  Follower(const Run& run, const DdPpoSettings& settings)
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

void follow_checkpoints(const Run& run, const DdPpoSettings& settings, const MakeEnvironments& make,
                        Policy& policy) {
  const Group& group = run.group;
  const std::int64_t last_step = settings.pipeline.steps;
  std::optional<Follower> follower;
  if (group.rank == 0) follower.emplace(run, settings);
  Validator validator(make, settings.validation, policy, group);
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
    scores = validator.validate();
    const double done = static_cast<double>(step) / static_cast<double>(last_step);
    if (follower) follower->tell(found->checkpoint, done, scores);
  }
  if (follower) follower->ours->finish(scores);
}

}  // namespace dtool::trainer
