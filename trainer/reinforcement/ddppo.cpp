// SPDX-License-Identifier: MIT
// Read it from `advance` on: a rollout, the data that ranks need of each other's, and the passes
// over it.
#include "trainer/reinforcement/ddppo.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "trainer/ranks/gpu.h"
#include "trainer/reinforcement/kept_samplers.h"
#include "trainer/reinforcement/learner.h"
#include "trainer/reinforcement/ppo_settings.h"
#include "trainer/reinforcement/rollout.h"
#include "trainer/reinforcement/validation.h"
#include "trainer/training/training.h"

namespace dtool::trainer {
namespace {

using Clock = std::chrono::steady_clock;

/// With a memory of 128 an H100 learned four times as fast with cuBLASLt, with one of 512 a quarter
/// slower (docs/benchmarks.md).
constexpr std::int64_t kSmallMemory = 128;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// One run's.
class DdPpo : public Workload {
 public:
  DdPpo(const Run& run, const DdPpoSettings& settings, const MakeEnvironments& make,
        Policy& policy);

  Weights& model() override { return policy_; }
  Optimizer& optimizer() override { return optimizer_; }
  std::size_t stages() const override { return pipeline_.stages.size(); }
  void restore(const std::vector<NamedTensor>& others) override;
  std::vector<NamedTensor> others() override;

  void begin() override;
  bool is_over() const override { return pipeline_.is_over(progress.steps); }
  Position position() const override;

  Advance advance(const std::function<int()>& asked, ProgressLog* log) override;
  void tell(const Due& due, ProgressLog* log) override;
  Evaluation evaluate(ProgressLog* log) override;
  void restart_clock() override { last_told_ = Clock::now(); }

 private:
  void enter_stage(ProgressLog* log);
  const PipelineStage& stage() const {
    return pipeline_.stages[static_cast<std::size_t>(progress.stage)];
  }
  const UpdateSettings& update() const { return stage().update; }
  void collect();
  double learning_rate() const;

  const Run& run_;
  const DdPpoSettings& settings_;
  const Group& group_;
  std::vector<SamplerRange> shares_;  ///< the shares of all ranks
  SamplerRange mine_;
  Pipeline pipeline_;
  Policy& policy_;
  Optimizer optimizer_;
  const std::unique_ptr<Environments> samplers_;
  Rollout rollout_;
  Collector collector_;
  std::optional<ReturnScale> scale_;
  Stragglers stragglers_;
  Validator validator_;
  std::optional<Learner> learner_;
  ExperienceSums untold_;  ///< this rank's, since the last line
  Clock::time_point last_told_ = Clock::now();
  double learning_rate_ = 0;  ///< the learning rate of the last update
  std::string not_recorded_;  ///< why, until the log is told
};

DdPpo::DdPpo(const Run& run, const DdPpoSettings& settings, const MakeEnvironments& make,
             Policy& policy)
    : run_(run),
      settings_(settings),
      group_(run.group),
      shares_(shares_of(group_.members, settings_)),
      mine_(shares_[static_cast<std::size_t>(group_.rank)]),
      pipeline_(plan_pipeline(settings_, nodes_of(group_.members, settings_))),
      policy_(policy),
      optimizer_(tensors_of(policy_.parameters()), run.experiment.optimizer),
      samplers_(
          make(EpisodeSet::training, run.options.seed, mine_.first, static_cast<int>(mine_.count))),
      rollout_(update().num_steps, mine_.count, policy_),
      collector_(*samplers_, policy_, settings_.ppo.gamma, run.options.seed, mine_.first,
                 settings_.ppo.cuda_graph, [this](const std::string& why) { not_recorded_ = why; }),
      stragglers_(run.meeting, settings_.ppo.preemption_share,
                  run.experiment.distributed.collective_timeout),
      validator_(make, settings_.validation, policy_, group_) {
  if (settings_.ppo.normalise_returns) scale_.emplace(mine_.count, settings_.ppo.gamma);
  progress.environment = samplers_->made_of();
}

void DdPpo::restore(const std::vector<NamedTensor>& others) {
  const auto all = count_all(shares_);
  const auto there = std::min(all, restore_samplers(others, mine_, *samplers_, collector_));
  if (scale_) scale_->restore(others, mine_);
  if (there == all || group_.rank != 0) return;
  fmt::print("note: {} of {} samplers go on from the checkpoint, the others begin new episodes\n",
             there, all);
}

/// A collective operation, since rank 0 keeps the samplers of all.
std::vector<NamedTensor> DdPpo::others() {
  std::vector<NamedTensor> all = gather_samplers(group_, shares_, *samplers_, collector_);
  if (!scale_) return all;
  for (const NamedTensor& each : scale_->statistics()) all.push_back(each);
  all.push_back(
      {"returns.now", gather_rows(group_, shares_, scale_->returns().unsqueeze(1)).flatten()});
  return all;
}

void DdPpo::begin() {
  learner_.emplace(group_, policy_, optimizer_, settings_.ppo, run_.options.seed, mine_.first,
                   [this](const std::string& why) { not_recorded_ = why; });
}

/// Collects a rollout and learns from it. Rank 0's request is sent along with data that the ranks
/// exchange anyway.
Advance DdPpo::advance(const std::function<int()>& asked, ProgressLog* log) {
  const auto before = progress.steps;
  enter_stage(log);
  collect();
  if (scale_) scale_->apply(rollout_, group_);
  learning_rate_ = learning_rate();
  const Learned learned =
      learner_->learn(rollout_, progress.rollouts, update(), learning_rate_, asked());
  policy_.update_statistics(rollout_.observations.narrow(0, 0, rollout_.steps), group_);
  untold_ += learned.sums;
  if (const std::string why = std::exchange(not_recorded_, {}); log != nullptr && !why.empty()) {
    log->note("without a CUDA graph: " + why);
  }
  ++progress.rollouts;
  progress.steps += learned.steps;
  Advance done;
  done.request = learned.request;
  done.evaluation_is_due = pass_multiple(before, progress.steps, settings_.validation.every_steps);
  done.checkpoint_is_due = learned.request != 0;
  return done;
}

void DdPpo::enter_stage(ProgressLog* log) {
  const auto now = static_cast<std::int64_t>(pipeline_.stage_at(progress.steps));
  const bool is_new = now != progress.stage || progress.rollouts == 0;
  progress.stage = now;
  // A resumed run may begin in a later stage.
  if (rollout_.capacity() != update().num_steps) {
    rollout_ = Rollout(update().num_steps, mine_.count, policy_);
  }
  learner_->weigh(stage().loss);
  if (!is_new || log == nullptr || pipeline_.stages.size() == 1) return;
  log->note(fmt::format("stage {} of {}: rollouts of {} steps, {} mini-batches, each {} times",
                        now + 1, pipeline_.stages.size(), update().num_steps,
                        update().num_mini_batch, update().update_repeats));
}

void DdPpo::collect() {
  const PpoSettings& ppo = settings_.ppo;
  const auto least = static_cast<std::int64_t>(
      std::ceil(ppo.least_rollout_share * static_cast<double>(rollout_.capacity())));
  const auto begin = Clock::now();
  const std::int64_t every = update().advance_every;
  if (every > 0 && progress.rollouts > 0 && progress.rollouts % every == 0) collector_.advance();
  stragglers_.begin(progress.rollouts + 1);
  // So many numbers are apart that no two steps have the same, in whatever stage.
  const std::int64_t first_step = progress.rollouts * pipeline_.longest_rollout();
  collector_.collect(rollout_, first_step, [&](std::int64_t steps) {
    return steps >= least && stragglers_.enough_have_finished();
  });
  const bool is_whole = rollout_.steps == rollout_.capacity();
  if (is_whole) stragglers_.finish();
  untold_.episodes += samplers_->take_sums();
  untold_.collecting += seconds_since(begin);
  untold_.rollouts += 1;
  untold_.cut_short += is_whole ? 0 : 1;
}

double DdPpo::learning_rate() const {
  return scaled_learning_rate(run_.experiment.optimizer.learning_rate,
                              run_.experiment.optimizer.scaling, group_.size) *
         learning_rate_factor(pipeline_.schedule, static_cast<double>(progress.steps));
}

Position DdPpo::position() const {
  const double done =
      static_cast<double>(progress.steps) / static_cast<double>(pipeline_.stages.back().end);
  return {0, 0, progress.steps, std::min(1.0, done)};
}

void DdPpo::tell(const Due& due, ProgressLog* log) {
  if (!due.line && !due.evaluation && !due.checkpoint) return;
  const ExperienceSums sums = sum_over_ranks(group_, untold_);
  if (sums.learned == 0) return;
  const double loss = mean_loss(sums, stage().loss);
  if (!std::isfinite(loss)) {
    throw RunFailed(fmt::format("the loss is no longer a number at step {}", progress.steps));
  }
  const double seconds = seconds_since(last_told_);
  if (log != nullptr) {
    const Scores scores = scores_of(sums, policy_.spec().scores);
    Scores details = details_of(sums, seconds * group_.size);
    // The reward may be a score of the environments already.
    std::erase_if(details, [&](const auto& each) {
      return std::ranges::any_of(scores,
                                 [&](const auto& other) { return other.first == each.first; });
    });
    log->step({position(), loss, learning_rate_, sums.steps / seconds, scores, details});
  }
  untold_ = {};
  last_told_ = Clock::now();
}

Evaluation DdPpo::evaluate(ProgressLog* log) {
  Scores scores = validator_.validate();
  if (log != nullptr && scores.empty()) log->note("the validation is left: the run is to end");
  if (log != nullptr && !scores.empty()) log->validation(position(), scores);
  return {std::move(scores), Better::higher};
}

}  // namespace

void run_ddppo(const Run& run, const DdPpoSettings& settings, const MakeEnvironments& make,
               Policy& policy) {
  if (!settings.validation.follow.empty()) return follow_checkpoints(run, settings, make, policy);
  // Before the first product: otherwise a resumed run would round differently.
  if (run.group.device.is_cuda() && policy.memory_size() <= kSmallMemory) gpu::prefer_cublas_lt();
  DdPpo workload(run, settings, make, policy);
  train(run, workload);
}

}  // namespace dtool::trainer
