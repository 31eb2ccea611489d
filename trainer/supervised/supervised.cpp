// SPDX-License-Identifier: MIT
// One function per part of the seam. `advance` is one step of the optimizer, or as many as the
// stage repeats the samples.
#include "trainer/supervised/objective.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "trainer/data/provide_data.h"
#include "trainer/data/sampler.h"
#include "trainer/launch/launch.h"
#include "trainer/settings/usage_error.h"
#include "trainer/supervised/supervised_settings.h"
#include "trainer/training/graphed_step.h"

namespace dtool::trainer {
namespace {

/// The stages with batches of this rank.
std::vector<Stage> stages_of_rank(const TrainSettings& train, const Group& group) {
  std::vector<Stage> stages = train.stages;
  for (Stage& each : stages) {
    each.batch_size = batch_of_rank(each.batch_size, train.batch_per, group.local_size, group.size);
  }
  return stages;
}

/// A thread that gathers batches is a gain where a core would be idle, and a loss where the ranks
/// have to share theirs with it.
std::int64_t batches_ahead(const SampleTraining& training, int local_size) {
  return training.prefetch.value_or(local_size < count_cores() ? 2 : 0);
}

// A forward pass before the first step, from which training learns the shapes and parameters.

/// The loss of two training samples, with what autograd needs for a backward pass. A batch norm
/// needs more than one sample for a variance.
at::Tensor probe_loss(Objective& objective) {
  objective.model().set_mode(Mode::training);
  const DataSet& train = objective.data().train;
  return objective.loss(gather(train, Range{0, std::min<std::int64_t>(2, train.size())}), {});
}

/// Runs `action`, then restores the model's buffers: a probe must not change a batch norm's
/// averages.
void keeping_buffers(const Model& model, const std::function<void()>& action) {
  const auto buffers = model.buffers();
  std::vector<at::Tensor> former;
  for (const auto& each : buffers) former.push_back(each.tensor.clone());
  action();
  const c10::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].tensor.copy_(former[i]);
}

/// The parameters that the loss depends on. Rank 0 notes the others, which never change because
/// they have no gradient. Throws UsageError if there are none.
std::vector<at::Tensor> trained_parameters(Objective& objective, const Group& group) {
  keeping_buffers(objective.model(), [&] { probe_loss(objective).backward(); });
  std::vector<at::Tensor> trained;
  for (const auto& [name, tensor] : objective.model().parameters()) {
    if (tensor.grad().defined()) {
      trained.push_back(tensor);
    } else if (group.rank == 0) {
      fmt::print("note: the loss does not depend on {}, which stays as it is\n", name);
    }
    tensor.mutable_grad().reset();
  }
  if (trained.empty()) throw UsageError("the loss does not depend on any parameter");
  return trained;
}

/// One run of samples that a model learns from, epoch by epoch.
class Supervised : public Workload {
 public:
  Supervised(const Run& run, const SampleTraining& training, Objective& objective)
      : run_(run),
        training_(training),
        group_(run.group),
        objective_(objective),
        plan_(stages_of_rank(training.train, run.group),
              objective.data().train.size() / run.group.size),
        parameters_(trained_parameters(objective, run.group)),
        optimizer_(parameters_, run.experiment.optimizer),
        results_(at::zeros({2}, at::TensorOptions(run.group.device).dtype(at::kFloat))) {
    progress.training_samples = objective_.data().train.size();
  }

  Weights& model() override { return objective_.model(); }
  Optimizer& optimizer() override { return optimizer_; }
  std::size_t stages() const override { return plan_.size(); }

  void begin() override;
  bool is_over() const override { return plan_.is_over(progress); }
  Position position() const override;

  Advance advance(const std::function<int()>& asked, ProgressLog* log) override;
  void tell(const Due& due, ProgressLog* log) override;
  Evaluation evaluate(ProgressLog* log) override;
  void close(const Due& due, const Scores& scores, ProgressLog* log) override;
  void restart_clock() override { window_.begin_again(); }

 private:
  void begin_leg(ProgressLog* log);
  void end_leg();
  void next_stage(ProgressLog* log);
  std::vector<DrawnBatch> next_batches();
  void step();
  void compute(const std::vector<DrawnBatch>& batches) {
    step_on_device(batches, objective_, *parallel_, optimizer_, results_);
  }
  double learning_rate() const;
  Report report(const LossSums& sums) const;

  const Run& run_;
  const SampleTraining& training_;
  const Group& group_;
  Objective& objective_;
  StagePlan plan_;
  std::vector<at::Tensor> parameters_;
  Optimizer optimizer_;
  std::optional<DataParallel> parallel_;
  std::optional<GraphedStep> graphed_;  ///< the graphed step, where steps are played back
  std::string not_recorded_;            ///< why, until the log is told
  std::optional<BatchLoader> loader_;   ///< within a leg: up to the end of an epoch or of a stage
  std::vector<DrawnBatch> batches_;     ///< the next step's
  bool ended_leg_ = false;              ///< the last step did
  bool ended_epoch_ = false;            ///< the last step ended an epoch, or the run within one
  std::int64_t epoch_ = 0;              ///< the epoch of the last step, from 1
  at::Tensor results_;                  ///< those of the step; always in the same place
  LossWindow window_;
  LossSums epoch_sums_;
  LossSums untold_sums_;      ///< the sums since the last line
  double learning_rate_ = 0;  ///< the learning rate of the last step
};

void Supervised::begin() {
  epoch_ = progress.epochs + 1;
  parallel_.emplace(group_, parameters_);
  keeping_buffers(objective_.model(),
                  [this] { parallel_->settle([this] { return probe_loss(objective_); }); });
  graphed_ = graphed_step(
      training_.train.cuda_graph, group_.device, optimizer_.replay(),
      [this](const std::vector<at::Tensor>& inputs) { compute(drawn_in(inputs, batches_.size())); },
      [this](const std::string& why) { not_recorded_ = why; });
}

Position Supervised::position() const {
  return {epoch_, plan_.epochs(), progress.steps, plan_.share_done(progress)};
}

/// Rank 0 has all that a checkpoint needs, and is asked alone; the other ranks wait for it in the
/// next step.
Advance Supervised::advance(const std::function<int()>& asked, ProgressLog* log) {
  if (!loader_) begin_leg(log);
  const auto repeats = batches_.empty() ? 0 : plan_.stage(progress).repeats;
  for (std::int64_t i = 0; i < repeats && !plan_.stage_is_over(progress); ++i) step();
  if (const std::string reason = std::exchange(not_recorded_, {});
      log != nullptr && !reason.empty()) {
    log->note("without a CUDA graph: " + reason);
  }
  for (const DrawnBatch& each : batches_) progress.samples += each.size() * group_.size;
  batches_ = next_batches();
  ended_leg_ = batches_.empty() || plan_.stage_is_over(progress);
  if (ended_leg_) end_leg();
  const auto ends = [&](std::int64_t every) {
    return ended_epoch_ && progress.samples == 0 && every > 0 && progress.epochs % every == 0;
  };
  Advance done;
  done.evaluation_is_due = ends(training_.train.evaluate_every);
  done.checkpoint_is_due = ends(run_.experiment.checkpoint.every_epochs);
  done.request = asked();
  return done;
}

void Supervised::begin_leg(ProgressLog* log) {
  if (plan_.stage_is_over(progress)) next_stage(log);
  epoch_ = progress.epochs + 1;
  ended_epoch_ = false;
  loader_.emplace(objective_.data().train,
                  training_order(progress.training_samples, group_.rank, group_.size,
                                 run_.options.seed, epoch_, progress.samples),
                  plan_.stage(progress).batch_size, batches_ahead(training_, group_.local_size));
  objective_.model().set_mode(Mode::training);
  window_.begin_again();
  batches_ = next_batches();
}

void Supervised::end_leg() {
  if (batches_.empty()) {
    ++progress.epochs;
    ++progress.stage_epochs;
    progress.samples = 0;
  }
  ended_epoch_ = batches_.empty() || is_over();
  batches_.clear();
  loader_.reset();
}

void Supervised::next_stage(ProgressLog* log) {
  ++progress.stage;
  progress.stage_epochs = 0;
  progress.stage_steps = 0;
  if (log == nullptr) return;
  const Stage& stage = plan_.stage(progress);
  log->note(fmt::format("stage {} of {}: batches of {} a rank, {} a step, each step {} times",
                        progress.stage + 1, plan_.size(), stage.batch_size, stage.accumulate,
                        stage.repeats));
}

std::vector<DrawnBatch> Supervised::next_batches() {
  std::vector<DrawnBatch> batches;
  for (std::int64_t i = 0; i < plan_.stage(progress).accumulate; ++i) {
    auto batch = loader_->next();
    if (!batch) break;
    batches.push_back(std::move(*batch));
  }
  return batches;
}

/// The batches together are one: each counts by its samples.
void Supervised::step() {
  if (objective_.model().random_numbers() == RandomNumbers::drawn) {
    // Depends on nothing that came before, so that a checkpoint need not keep it.
    torch::manual_seed(Random(Random(run_.options.seed).next() ^
                              (static_cast<std::uint64_t>(progress.steps) << 20) ^
                              static_cast<std::uint64_t>(group_.rank))
                           .next());
  }
  learning_rate_ = learning_rate();
  optimizer_.prepare(learning_rate_);
  if (graphed_) {
    graphed_->run(tensors_of(batches_));
  } else {
    compute(batches_);
  }
  window_.add(results_, samples_of(batches_), progress.steps + 1);
  ++progress.steps;
  ++progress.stage_steps;
}

double Supervised::learning_rate() const {
  const ScheduleSettings& schedule = training_.schedule;
  const double time = schedule.unit == ScheduleUnit::steps ? static_cast<double>(progress.steps)
                                                           : plan_.epochs_done(progress);
  return scaled_learning_rate(plan_.stage(progress).learning_rate,
                              run_.experiment.optimizer.scaling, group_.size) *
         learning_rate_factor(schedule, time);
}

void Supervised::tell(const Due& due, ProgressLog* log) {
  if (!due.line && !due.checkpoint && !ended_leg_) return;
  const LossSums sums = window_.take(group_);
  if (!std::isfinite(sums.loss)) throw RunFailed(where_the_loss_was_lost(group_, epoch_, sums));
  epoch_sums_ += sums;
  untold_sums_ += sums;
  if (!due.line) return;
  if (log != nullptr) log->step(report(untold_sums_));
  untold_sums_ = {};
}

Report Supervised::report(const LossSums& sums) const {
  const auto divided = [](double sum, double by) { return by > 0 ? sum / by : 0; };
  const Scores scores = {{"train_accuracy", divided(sums.right, sums.samples)}};
  return {position(),
          divided(sums.loss, sums.samples),
          learning_rate_,
          divided(sums.samples, sums.seconds),
          objective_.counts_right() ? scores : Scores{},
          {}};
}

Evaluation Supervised::evaluate(ProgressLog* /*log*/) {
  const auto samples = objective_.data().test.size();
  for (const auto& each : objective_.model().buffers()) broadcast(group_, each.tensor);
  const auto sums = sum_over_ranks(
      group_, objective_.evaluate(evaluation_range(samples, group_.rank, group_.size)));
  const auto names = objective_.scores();
  Evaluation evaluation;
  evaluation.better = names.back().better;
  for (std::size_t i = 0; i < names.size(); ++i) {
    evaluation.scores.emplace_back(names[i].name, sums[i] / static_cast<double>(samples));
  }
  return evaluation;
}

/// The line of an epoch, or of where the run ended within one.
void Supervised::close(const Due& due, const Scores& scores, ProgressLog* log) {
  if (!ended_epoch_) return;
  Report done = report(epoch_sums_);
  epoch_sums_ = untold_sums_ = {};
  if (due.evaluation) done.scores.insert(done.scores.end(), scores.begin(), scores.end());
  if (log != nullptr) log->epoch(done);
}

/// Each machine has its own files or function. Ranks with other numbers of samples would meet a
/// different number of times. Throws UsageError.
void refuse_unlike(const DataSets& data, const Group& group) {
  const std::vector<double> mine = {static_cast<double>(data.train.size()),
                                    static_cast<double>(data.test.size()),
                                    static_cast<double>(data.outputs)};
  const std::vector<double> all = sum_over_ranks(group, mine);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (all[i] == mine[i] * group.size) continue;
    throw UsageError(
        fmt::format("the machines have other data: here are {} samples to train, {} "
                    "to test and {} outputs, elsewhere not",
                    mine[0], mine[1], mine[2]),
        "give every machine the same files; a function in Python has to give the same");
  }
}

void prepare(Experiment& experiment, const Meeting& meeting) {
  provide_data(dynamic_cast<SupervisedSettings&>(*experiment.own).data.files, meeting);
}

void run_supervised(const Run& run) {
  const auto& settings = dynamic_cast<const SupervisedSettings&>(*run.experiment.own);
  SampleTraining training{settings.train, settings.schedule, settings.data.prefetch};
  CudaGraph& graph = training.train.cuda_graph.wanted;
  // A TorchScript module's operations may be impossible to record.
  if (graph == CudaGraph::automatic && settings.kind == ModelKind::torchscript) {
    graph = CudaGraph::off;
  }
  // Refuses what this device cannot do, before the data is loaded.
  plays_back(training.train.cuda_graph, run.group.device);
  DataSets data =
      load_on_machine([&](const SampleMemory& memory) { return load_data(settings.data, memory); },
                      run.meeting, run.group.device);
  refuse_unlike(data, run.group);
  auto model = make_model(settings.model, data, run.group);
  SettingsObjective objective(std::move(model), std::move(data), settings.model,
                              training.train.precision);
  train_on_samples(run, training, objective);
}

}  // namespace

void train_on_samples(const Run& run, const SampleTraining& training, Objective& objective) {
  refuse_unlike(objective.data(), run.group);
  const auto samples = objective.data().train.size();
  if (samples < run.group.size) {
    throw UsageError(
        fmt::format("{} training samples are too few for {} ranks", samples, run.group.size));
  }
  Supervised workload(run, training, objective);
  train(run, workload);
}

namespace supervised {

extern const WorkloadRunner kRunner;
const WorkloadRunner kRunner = {prepare, run_supervised};

}  // namespace supervised

}  // namespace dtool::trainer
