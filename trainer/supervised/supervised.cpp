// Reads from the top: `run` prepares or resumes, then trains epoch by epoch, each step by step.
#include "trainer/supervised/supervised.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "trainer/data/batch_loader.h"
#include "trainer/data/sampler.h"
#include "trainer/launch/launch.h"
#include "trainer/launch/requests.h"
#include "trainer/ranks/gpu.h"
#include "trainer/report/progress_log.h"
#include "trainer/settings/usage_error.h"
#include "trainer/supervised/cuda_graph.h"
#include "trainer/supervised/loss_window.h"
#include "trainer/supervised/probe.h"
#include "trainer/supervised/stage_plan.h"
#include "trainer/training/checkpoint_folder.h"
#include "trainer/training/checkpoint_keeper.h"
#include "trainer/training/data_parallel.h"
#include "trainer/training/optimizer.h"
#include "trainer/training/resume.h"

namespace dtool::trainer {
namespace {

/// The stages with batches of this rank.
std::vector<Stage> stages_of_rank(const Experiment& experiment, const Group& group) {
  std::vector<Stage> stages = experiment.train.stages;
  for (Stage& each : stages) {
    each.batch_size =
        batch_of_rank(each.batch_size, experiment.train.batch_per, group.local_size, group.size);
  }
  return stages;
}

/// A thread that gathers batches is a gain where a core would be idle, and a loss where the ranks
/// have to share theirs with it.
std::int64_t batches_ahead(const DataSettings& data, int local_size) {
  return data.prefetch.value_or(local_size < count_cores() ? 2 : 0);
}

std::int64_t samples_of(const std::vector<Batch>& batches) {
  std::int64_t samples = 0;
  for (const Batch& each : batches) samples += each.size();
  return samples;
}

/// One run of the loop, with everything that lives as long as it.
class Training {
 public:
  Training(const Experiment& experiment, const Options& options, const Group& group,
           Objective& objective)
      : experiment_(experiment),
        options_(options),
        group_(group),
        objective_(objective),
        plan_(stages_of_rank(experiment, group), objective.data().train.size() / group.size),
        loss_(at::zeros({}, at::TensorOptions(group.device).dtype(at::kFloat))) {}

  void run();

 private:
  void resume();
  void open_log();

  void train_leg();
  std::vector<Batch> next_batches(BatchLoader& loader);
  void step(const std::vector<Batch>& batches);
  void compute(const std::vector<Batch>& batches);
  double learning_rate() const;
  void check_loss();
  void tell_loss();
  void close_epoch();
  void next_stage();

  Position position(std::int64_t epoch) const;
  Report report(std::int64_t epoch, const LossSums& sums) const;
  void evaluate();
  bool keeps_checkpoints() const;
  void heed_requests();

  const Experiment& experiment_;
  const Options& options_;
  const Group& group_;
  Objective& objective_;
  StagePlan plan_;
  std::optional<Optimizer> optimizer_;
  std::optional<CheckpointKeeper> keeper_;
  std::optional<DataParallel> parallel_;
  std::optional<GraphedStep> graphed_;  ///< where steps are played back
  std::optional<ProgressLog> log_;      ///< rank 0 only
  at::Tensor loss_;                     ///< mean of the step's; always in the same place
  LossWindow window_;
  LossSums epoch_sums_;
  LossSums untold_sums_;  ///< since the last line
  Progress progress_;
  double learning_rate_ = 0;  ///< of the last step
  std::string resumed_from_;
  Scores scores_;  ///< of the last evaluation
};

void Training::run() {
  if (group_.rank == 0) std::filesystem::create_directories(checkpoints_of(options_));
  progress_.seed = options_.seed;
  progress_.world_size = group_.size;
  progress_.training_samples = objective_.data().train.size();
  const auto parameters = trained_parameters(objective_, group_);
  optimizer_.emplace(parameters, experiment_.optimizer);
  keeper_.emplace(group_, options_, experiment_.checkpoint, objective_.model(), *optimizer_,
                  progress_);
  if (options_.checkpoint) resume();
  parallel_.emplace(group_, parameters);
  keeping_buffers(objective_.model(),
                  [this] { parallel_->settle([this] { return probe_loss(objective_); }); });
  if (plays_back(experiment_.train.cuda_graph, experiment_.workload, group_.device)) {
    graphed_.emplace([this](const std::vector<Batch>& batches) { compute(batches); }, gpu::record);
  }
  open_log();
  if (plan_.is_over(progress_)) evaluate();
  if (keeps_checkpoints()) await_requests();
  while (!plan_.is_over(progress_)) {
    train_leg();
    heed_requests();
  }
  await_no_requests();
  if (!log_) return;
  if (const auto model = objective_.model().exported()) {
    write_whole(options_.output_dir / "trained_model.pt", *model);
  }
  log_->finish(scores_);
}

void Training::open_log() {
  if (group_.rank != 0) return;
  const auto tensorboard = experiment_.log_tensorboard ? TensorBoard::on : TensorBoard::off;
  log_.emplace(options_.output_dir, tensorboard,
               RunStart{options_.seed, group_.size, resumed_from_, progress_.steps,
                        plan_.share_done(progress_)});
  if (resumed_from_.empty()) return;
  log_->note(fmt::format("resumed from {} at epoch {}, step {}", resumed_from_,
                         progress_.epochs + 1, progress_.steps));
}

void Training::resume() {
  const Resumed resumed =
      resume_from(options_, group_, objective_.model(), *optimizer_, progress_, plan_.size());
  resumed_from_ = resumed.from;
  progress_ = resumed.progress;
  if (plan_.stage_is_over(progress_) && !plan_.is_over(progress_)) next_stage();
}

/// Up to the end of the epoch or of the stage, whichever comes first.
void Training::train_leg() {
  const Stage& stage = plan_.stage(progress_);
  BatchLoader loader(objective_.data().train,
                     training_order(progress_.training_samples, group_.rank, group_.size,
                                    options_.seed, progress_.epochs + 1, progress_.samples),
                     stage.batch_size, batches_ahead(experiment_.data, group_.local_size));
  objective_.model().set_mode(Mode::training);
  window_.begin_again();
  auto batches = next_batches(loader);
  while (!batches.empty()) {
    const auto steps_before = progress_.steps;
    for (std::int64_t i = 0; i < stage.repeats && !plan_.stage_is_over(progress_); ++i) {
      step(batches);
    }
    for (const Batch& each : batches) progress_.samples += each.size() * group_.size;
    batches = next_batches(loader);
    const bool is_last = batches.empty() || plan_.stage_is_over(progress_);
    if (log_) log_->tick(position(progress_.epochs + 1));
    const bool is_kept = !is_last && keeper_->is_due(steps_before);
    const bool is_told = pass_multiple(steps_before, progress_.steps, experiment_.log_every_steps);
    if (is_kept || is_told || is_last) check_loss();
    if (is_told) tell_loss();
    if (is_kept) keeper_->keep();
    if (is_last) break;
    heed_requests();
  }
  const bool whole_epoch = batches.empty();
  if (whole_epoch) {
    ++progress_.epochs;
    ++progress_.stage_epochs;
    progress_.samples = 0;
  }
  if (whole_epoch || plan_.is_over(progress_)) close_epoch();
  if (plan_.stage_is_over(progress_) && !plan_.is_over(progress_)) next_stage();
}

std::vector<Batch> Training::next_batches(BatchLoader& loader) {
  std::vector<Batch> batches;
  for (std::int64_t i = 0; i < plan_.stage(progress_).accumulate; ++i) {
    auto batch = loader.next();
    if (!batch) break;
    batches.push_back(std::move(*batch));
  }
  return batches;
}

/// The batches together are one: each counts by its samples.
void Training::step(const std::vector<Batch>& batches) {
  if (objective_.model().random_numbers() == RandomNumbers::drawn) {
    // Depends on nothing that came before, so that a checkpoint need not keep it.
    torch::manual_seed(Random(Random(options_.seed).next() ^
                              (static_cast<std::uint64_t>(progress_.steps) << 20) ^
                              static_cast<std::uint64_t>(group_.rank))
                           .next());
  }
  learning_rate_ = learning_rate();
  optimizer_->prepare(learning_rate_);
  if (graphed_) {
    graphed_->run(batches);
  } else {
    compute(batches);
  }
  window_.add(loss_, samples_of(batches), progress_.steps + 1);
  ++progress_.steps;
  ++progress_.stage_steps;
}

/// What the device does in a step; nothing of it may depend on a number of the CPU's that changes.
void Training::compute(const std::vector<Batch>& batches) {
  const auto samples = static_cast<double>(samples_of(batches));
  parallel_->begin_step();
  loss_.zero_();
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const at::Tensor loss = objective_.loss(batches[i]);
    const double share = static_cast<double>(batches[i].size()) / samples;
    parallel_->backward(share == 1 ? loss : loss * share,
                        i + 1 == batches.size() ? Exchange::yes : Exchange::no);
    loss_.add_(loss.detach(), share);
  }
  optimizer_->apply();
}

double Training::learning_rate() const {
  const ScheduleSettings& schedule = experiment_.schedule;
  const double time = schedule.unit == ScheduleUnit::steps ? static_cast<double>(progress_.steps)
                                                           : plan_.epochs_done(progress_);
  return scaled_learning_rate(plan_.stage(progress_).learning_rate, experiment_.optimizer.scaling,
                              group_.size) *
         learning_rate_factor(schedule, time);
}

/// Before anything is told or kept of the steps since the last time.
void Training::check_loss() {
  const LossSums sums = window_.take(group_);
  if (!std::isfinite(sums.loss)) {
    throw RunFailed(where_the_loss_was_lost(group_, progress_.epochs + 1, sums));
  }
  epoch_sums_ += sums;
  untold_sums_ += sums;
}

void Training::tell_loss() {
  if (log_) log_->step(report(progress_.epochs + 1, untold_sums_));
  untold_sums_ = {};
}

/// After an epoch, or where the run ends within one.
void Training::close_epoch() {
  const bool is_over = plan_.is_over(progress_);
  const auto due = [&](std::int64_t every) {
    return is_over || (every > 0 && progress_.samples == 0 && progress_.epochs % every == 0);
  };
  Report done = report(progress_.epochs + (progress_.samples == 0 ? 0 : 1), epoch_sums_);
  epoch_sums_ = untold_sums_ = {};
  if (due(experiment_.train.evaluate_every)) {
    evaluate();
    done.scores = scores_;
  }
  if (log_) log_->epoch(done);
  if (keeps_checkpoints() && due(experiment_.checkpoint.every_epochs)) keeper_->keep();
}

void Training::next_stage() {
  ++progress_.stage;
  progress_.stage_epochs = 0;
  progress_.stage_steps = 0;
  if (!log_) return;
  const Stage& stage = plan_.stage(progress_);
  log_->note(fmt::format("stage {} of {}: batches of {} a rank, {} a step, each step {} times",
                         progress_.stage + 1, plan_.size(), stage.batch_size, stage.accumulate,
                         stage.repeats));
}

Position Training::position(std::int64_t epoch) const {
  return {epoch, plan_.epochs(), progress_.steps, plan_.share_done(progress_)};
}

Report Training::report(std::int64_t epoch, const LossSums& sums) const {
  const auto divided = [](double sum, double by) { return by > 0 ? sum / by : 0; };
  return {position(epoch),
          divided(sums.loss, sums.samples),
          learning_rate_,
          divided(sums.samples, sums.seconds),
          {},
          {}};
}

void Training::evaluate() {
  const auto samples = objective_.data().test.size();
  for (const auto& each : objective_.model().buffers()) broadcast(group_, each.tensor);
  const auto sums = sum_over_ranks(
      group_, objective_.evaluate(evaluation_range(samples, group_.rank, group_.size)));
  const auto names = objective_.scores();
  scores_.clear();
  for (std::size_t i = 0; i < names.size(); ++i) {
    scores_.emplace_back(names[i].name, sums[i] / static_cast<double>(samples));
  }
  keeper_->take_score(scores_.back().second, names.back().better);
}

bool Training::keeps_checkpoints() const {
  return experiment_.checkpoint.every_epochs + experiment_.checkpoint.every_steps > 0;
}

/// Between two steps, where rank 0 has all that a checkpoint needs; the other ranks wait for it in
/// the next one. What cannot be resumed from is not kept: the loss, in which it shows, is not
/// looked at now, since that takes all ranks.
void Training::heed_requests() {
  if (!log_) return;
  const int signal = take_request();
  if (signal == 0) return;
  const bool is_sound = keeper_->is_sound();
  if (is_sound && keeper_->kept_step() != progress_.steps) keeper_->keep();
  keeper_->answer(signal, is_sound ? "checkpoint written" : "no checkpoint, the model is no number",
                  *log_);
}

}  // namespace

void train(const Experiment& experiment, const Options& options, const Group& group,
           Objective& objective) {
  const auto samples = objective.data().train.size();
  if (samples < group.size) {
    throw UsageError(
        fmt::format("{} training samples are too few for {} ranks", samples, group.size));
  }
  Training(experiment, options, group, objective).run();
}

}  // namespace dtool::trainer
