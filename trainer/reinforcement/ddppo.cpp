// Reads from the top: `run` prepares or resumes, then takes update after update: a rollout, what
// the ranks have to know of each other's, and the passes over it.
#include "trainer/reinforcement/ddppo.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "trainer/launch/requests.h"
#include "trainer/objectnav/samplers.h"
#include "trainer/reinforcement/actor_critic.h"
#include "trainer/reinforcement/experience.h"
#include "trainer/reinforcement/kept_samplers.h"
#include "trainer/reinforcement/learner.h"
#include "trainer/reinforcement/pipeline.h"
#include "trainer/reinforcement/rollout.h"
#include "trainer/reinforcement/stragglers.h"
#include "trainer/reinforcement/validation.h"
#include "trainer/report/progress_log.h"
#include "trainer/training/checkpoint_keeper.h"
#include "trainer/training/resume.h"

namespace dtool::trainer {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// One run of the loop, with everything that lives as long as it.
class DdPpo {
 public:
  DdPpo(const Experiment& experiment, const Options& options, const Meeting& meeting,
        const Group& group);

  void run();

 private:
  void resume();
  void open_log();

  void update();
  void collect();
  void enter_stage();
  double learning_rate() const;
  bool keeps_checkpoints() const { return experiment_.checkpoint.every_steps > 0; }

  Position position() const;
  void tell();
  void validate();
  void keep_checkpoint();

  const Experiment& experiment_;
  const ObjectNavSettings& settings_;
  const Options& options_;
  const Group& group_;
  std::int64_t first_sampler_;
  Pipeline pipeline_;
  ActorCritic policy_;
  Optimizer optimizer_;
  Samplers samplers_;
  Rollout rollout_;
  Collector collector_;  ///< its threads write into the rollout
  Stragglers stragglers_;
  std::optional<Learner> learner_;
  std::optional<ProgressLog> log_;  ///< rank 0 only
  Progress progress_;
  ExperienceSums untold_;  ///< this rank's, since the last line
  Clock::time_point last_told_ = Clock::now();
  double learning_rate_ = 0;  ///< of the last update
  std::string resumed_from_;
  CheckpointKeeper keeper_;
  Scores scores_;  ///< of the last validation
};

DdPpo::DdPpo(const Experiment& experiment, const Options& options, const Meeting& meeting,
             const Group& group)
    : experiment_(experiment),
      settings_(*experiment.objectnav),
      options_(options),
      group_(group),
      first_sampler_(group.rank * settings_.samplers),
      pipeline_(plan_pipeline(settings_, group.size)),
      policy_({settings_.embedding, settings_.hidden}, group.device),
      optimizer_(tensors_of(policy_.parameters()), experiment.optimizer),
      samplers_(settings_.environment, HouseSet::training, options.seed, first_sampler_,
                static_cast<int>(settings_.samplers)),
      rollout_(settings_.ppo.num_steps, settings_.samplers, policy_.memory_size()),
      collector_(samplers_, settings_.environment.threads, policy_, options.seed, first_sampler_),
      stragglers_(meeting, settings_.ppo.preemption_share,
                  experiment.distributed.collective_timeout),
      keeper_(group, options, experiment.checkpoint, policy_, optimizer_, progress_) {}

void DdPpo::run() {
  if (group_.rank == 0) std::filesystem::create_directories(checkpoints_of(options_));
  progress_.seed = options_.seed;
  progress_.world_size = group_.size;
  if (options_.checkpoint) resume();
  learner_.emplace(group_, policy_, optimizer_, settings_.ppo, options_.seed, first_sampler_);
  open_log();
  if (pipeline_.is_over(progress_.steps)) validate();
  if (keeps_checkpoints()) await_requests();
  while (!pipeline_.is_over(progress_.steps)) update();
  await_no_requests();
  if (log_) log_->finish(scores_);
}

void DdPpo::open_log() {
  if (group_.rank != 0) return;
  const auto tensorboard = experiment_.log_tensorboard ? TensorBoard::on : TensorBoard::off;
  log_.emplace(
      options_.output_dir, tensorboard,
      RunStart{options_.seed, group_.size, resumed_from_, progress_.steps, position().done});
  if (resumed_from_.empty()) return;
  log_->note(fmt::format("resumed from {} at step {}", resumed_from_, progress_.steps));
}

void DdPpo::resume() {
  const Resumed resumed =
      resume_from(options_, group_, policy_, optimizer_, progress_, pipeline_.stages.size());
  resumed_from_ = resumed.from;
  progress_ = resumed.progress;
  if (resumed_from_.empty()) return;
  const auto there = restore_samplers(resumed.others, group_, samplers_, collector_);
  const auto all = group_.size * settings_.samplers;
  if (there == all || group_.rank != 0) return;
  fmt::print("note: {} of {} samplers go on from the checkpoint, the others begin new episodes\n",
             there, all);
}

/// A rollout, and what is learned from it.
void DdPpo::update() {
  const auto steps_before = progress_.steps;
  enter_stage();
  collect();
  learning_rate_ = learning_rate();
  const auto& stage = pipeline_.stages[static_cast<std::size_t>(progress_.stage)];
  const Learned learned = learner_->learn(rollout_, progress_.rollouts, stage.update,
                                          learning_rate_, log_ ? take_request() : 0);
  untold_ += learned.sums;
  ++progress_.rollouts;
  progress_.steps += learned.steps;
  if (log_) log_->tick(position());
  const auto passes = [&](std::int64_t every) {
    return pass_multiple(steps_before, progress_.steps, every);
  };
  const bool is_last = pipeline_.is_over(progress_.steps);
  const bool is_kept =
      (is_last && keeps_checkpoints()) || learned.request != 0 || keeper_.is_due(steps_before);
  const bool is_validated = is_last || passes(settings_.validation.every_steps);
  if (is_kept || is_validated || passes(experiment_.log_every_steps)) tell();
  if (is_validated) validate();
  if (is_kept) keep_checkpoint();
  if (learned.request != 0 && log_) keeper_.answer(learned.request, "checkpoint written", *log_);
  if (is_validated || is_kept) last_told_ = Clock::now();
}

void DdPpo::enter_stage() {
  const auto stage = static_cast<std::int64_t>(pipeline_.stage_at(progress_.steps));
  if (stage == progress_.stage && progress_.rollouts > 0) return;
  progress_.stage = stage;
  if (!log_ || pipeline_.stages.size() == 1) return;
  const UpdateSettings& update = pipeline_.stages[static_cast<std::size_t>(stage)].update;
  log_->note(fmt::format("stage {} of {}: {} mini-batches a rollout, each {} times", stage + 1,
                         pipeline_.stages.size(), update.num_mini_batch, update.update_repeats));
}

void DdPpo::collect() {
  const PpoSettings& ppo = settings_.ppo;
  const auto least = static_cast<std::int64_t>(
      std::ceil(ppo.least_rollout_share * static_cast<double>(ppo.num_steps)));
  const auto begin = Clock::now();
  stragglers_.begin(progress_.rollouts + 1);
  collector_.collect(rollout_, progress_.rollouts * ppo.num_steps, [&](std::int64_t steps) {
    return steps >= least && stragglers_.enough_have_finished();
  });
  const bool is_whole = rollout_.steps == rollout_.capacity();
  if (is_whole) stragglers_.finish();
  untold_.episodes += samplers_.take_sums();
  untold_.collecting += seconds_since(begin);
  untold_.rollouts += 1;
  untold_.cut_short += is_whole ? 0 : 1;
}

double DdPpo::learning_rate() const {
  return scaled_learning_rate(experiment_.optimizer.learning_rate, experiment_.optimizer.scaling,
                              group_.size) *
         learning_rate_factor(pipeline_.schedule, static_cast<double>(progress_.steps));
}

Position DdPpo::position() const {
  const double done =
      static_cast<double>(progress_.steps) / static_cast<double>(pipeline_.stages.back().end);
  return {0, 0, progress_.steps, std::min(1.0, done)};
}

void DdPpo::tell() {
  const ExperienceSums sums = sums_of(sum_over_ranks(group_, numbers_of(untold_)));
  if (sums.learned == 0) return;
  const double loss = mean_loss(sums, settings_.ppo);
  if (!std::isfinite(loss)) {
    throw RunFailed(fmt::format("the loss is no longer a number at step {}", progress_.steps));
  }
  const double seconds = seconds_since(last_told_);
  if (log_) {
    log_->step({position(), loss, learning_rate_, sums.steps / seconds, scores_of(sums),
                details_of(sums, seconds * group_.size)});
  }
  untold_ = {};
  last_told_ = Clock::now();
}

void DdPpo::validate() {
  scores_ = trainer::validate(settings_.environment, settings_.validation, policy_, group_);
  if (log_) log_->validation(position(), scores_);
  keeper_.take_score(scores_.back().second, Better::higher);
}

/// A collective operation, since rank 0 keeps the samplers of all.
void DdPpo::keep_checkpoint() {
  keeper_.keep(gather_samplers(group_, samplers_, collector_));
}

}  // namespace

void train_ddppo(const Experiment& experiment, const Options& options, const Meeting& meeting,
                 const Group& group) {
  DdPpo(experiment, options, meeting, group).run();
}

}  // namespace dtool::trainer
