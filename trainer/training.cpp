// Reads from the top: `train` prepares or resumes, then repeats `train_epoch`.
#include "trainer/training.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "trainer/adam.h"
#include "trainer/checkpoint_folder.h"
#include "trainer/data_parallel.h"
#include "trainer/progress_log.h"
#include "trainer/sampler.h"
#include "trainer/snapshot.h"
#include "trainer/usage_error.h"

namespace dtool::trainer {
namespace {

using Clock = std::chrono::steady_clock;

/// Sums since they were last taken. The loss stays on the device, so that no step waits for it.
class Window {
 public:
  explicit Window(at::Device device)
      : loss_(at::zeros({}, at::TensorOptions(device).dtype(at::kFloat))) {}

  void add(const at::Tensor& mean_loss, std::int64_t samples) {
    loss_.add_(mean_loss.detach(), samples);
    samples_ += samples;
  }

  struct Sums {
    double loss = 0;
    double samples = 0;
    double seconds = 0;  ///< this rank's

    void operator+=(const Sums& other) {
      loss += other.loss;
      samples += other.samples;
      seconds += other.seconds;
    }
  };

  /// Over all ranks; begins anew.
  Sums take(const Group& group) {
    const auto sums = sum_over_ranks(group, {loss_.item<double>(), static_cast<double>(samples_)});
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    begin_again();
    return {sums[0], sums[1], seconds};
  }

  void begin_again() {
    loss_.zero_();
    samples_ = 0;
    begin_ = Clock::now();
  }

 private:
  at::Tensor loss_;
  std::int64_t samples_ = 0;
  Clock::time_point begin_ = Clock::now();
};

/// One run of the loop, with everything that lives as long as it.
class Training {
 public:
  Training(const Experiment& experiment, const Options& options, const Group& group,
           Workload& workload)
      : experiment_(experiment),
        options_(options),
        group_(group),
        workload_(workload),
        learning_rate_(scaled_learning_rate(experiment.optimizer, group.size)),
        optimizer_(workload.model().parameters(),
                   {learning_rate_, experiment.optimizer.beta1, experiment.optimizer.beta2,
                    experiment.optimizer.epsilon}),
        window_(group.device) {}

  void run();

 private:
  void open_log();
  void resume();
  void settle();
  void train_epoch(std::int64_t epoch);
  Window::Sums train_steps(std::int64_t epoch);
  Position position(std::int64_t epochs_done, double part_of_next) const;
  Report report(const Position& position, const Window::Sums& sums) const;
  Scores evaluate();
  void write_checkpoint(std::int64_t epochs);
  std::filesystem::path checkpoints() const { return options_.output_dir / "checkpoints"; }

  const Experiment& experiment_;
  const Options& options_;
  const Group& group_;
  Workload& workload_;
  double learning_rate_;
  Adam optimizer_;
  std::optional<DataParallel> parallel_;
  std::optional<ProgressLog> log_;  ///< rank 0 only
  Window window_;
  Progress progress_;
  std::string resumed_from_;
  Scores scores_;
};

void Training::run() {
  if (group_.rank == 0) std::filesystem::create_directories(checkpoints());
  progress_ = {0, 0, options_.seed, group_.size};
  if (options_.checkpoint) resume();
  parallel_.emplace(group_, workload_.model().parameters());
  settle();
  open_log();
  if (progress_.epochs >= experiment_.train.epochs) scores_ = evaluate();
  while (progress_.epochs < experiment_.train.epochs) train_epoch(progress_.epochs + 1);
  if (log_) log_->finish(scores_);
}

void Training::open_log() {
  if (group_.rank != 0) return;
  const auto tensorboard = experiment_.log_tensorboard ? TensorBoard::on : TensorBoard::off;
  const double done = position(progress_.epochs, 0).done;
  log_.emplace(options_.output_dir, tensorboard,
               RunStart{options_.seed, group_.size, resumed_from_, progress_.steps, done});
  if (resumed_from_.empty()) return;
  log_->note(fmt::format("resumed from {} after epoch {}", resumed_from_, progress_.epochs));
}

/// Rank 0 reads the file, which other machines need not have, and sends it round.
void Training::resume() {
  std::filesystem::path file = *options_.checkpoint;
  std::string bytes;
  if (group_.rank == 0) {
    if (file == "latest") {
      const auto latest = latest_checkpoint(checkpoints());
      if (!latest) {
        throw UsageError(fmt::format("--checkpoint latest: none in {}", checkpoints().string()));
      }
      file = *latest;
    } else if (!std::filesystem::is_regular_file(file)) {
      throw UsageError(fmt::format("no checkpoint at {}", file.string()));
    }
    bytes = read_whole(file);
  }
  const Progress saved =
      unpack(broadcast_text(group_, bytes), file.string(), workload_.model(), optimizer_);
  resumed_from_ = file.string();
  if (group_.rank == 0 && (saved.seed != options_.seed || saved.world_size != group_.size)) {
    fmt::print(
        "note: the checkpoint is of a run with seed {} on {} ranks, this one has seed {} on {}\n",
        saved.seed, saved.world_size, options_.seed, group_.size);
  }
  progress_.epochs = saved.epochs;
  progress_.steps = saved.steps;
}

/// Leaves no trace in the random numbers.
void Training::settle() {
  auto generator = at::detail::getDefaultCPUGenerator();
  const at::Tensor random_state = generator.get_state();
  parallel_->settle([this] {
    return workload_.loss(at::zeros({1}, at::TensorOptions(group_.device).dtype(at::kLong)));
  });
  generator.set_state(random_state);
}

void Training::train_epoch(std::int64_t epoch) {
  const Window::Sums sums = train_steps(epoch);
  Report done = report(position(epoch, 0), sums);
  progress_.epochs = epoch;
  const auto every = experiment_.train.evaluate_every;
  const bool last = epoch == experiment_.train.epochs;
  if (last || (every > 0 && epoch % every == 0)) done.scores = scores_ = evaluate();
  if (log_) log_->epoch(done);
  const auto save_every = experiment_.checkpoint.every_epochs;
  if (log_ && save_every > 0 && (last || epoch % save_every == 0)) write_checkpoint(epoch);
}

Window::Sums Training::train_steps(std::int64_t epoch) {
  auto order =
      training_order(workload_.training_samples(), group_.rank, group_.size, options_.seed, epoch);
  const auto share = static_cast<std::int64_t>(order.size());
  const at::Tensor samples =
      at::from_blob(order.data(), {share}, at::TensorOptions(at::kLong)).to(group_.device);
  const auto batch_size = experiment_.train.batch_size;
  Window::Sums epoch_sums;
  window_.begin_again();
  for (std::int64_t begin = 0; begin < share; begin += batch_size) {
    const at::Tensor batch = samples.slice(0, begin, std::min(begin + batch_size, share));
    const at::Tensor loss = workload_.loss(batch);
    parallel_->backward(loss);
    optimizer_.step();
    window_.add(loss, batch.size(0));
    ++progress_.steps;

    const bool last = begin + batch_size >= share;
    const auto done_samples = static_cast<double>(std::min(begin + batch_size, share));
    const Position here = position(epoch - 1, done_samples / static_cast<double>(share));
    if (log_) log_->tick(here);
    if (!last && progress_.steps % experiment_.log_every_steps != 0) continue;
    const Window::Sums sums = window_.take(group_);
    if (!std::isfinite(sums.loss)) {
      throw std::runtime_error(fmt::format("the loss is no longer a number at epoch {}, step {}",
                                           epoch, progress_.steps));
    }
    epoch_sums += sums;
    if (log_ && progress_.steps % experiment_.log_every_steps == 0) log_->step(report(here, sums));
  }
  return epoch_sums;
}

Position Training::position(std::int64_t epochs_done, double part_of_next) const {
  const auto epochs = experiment_.train.epochs;
  const double done =
      (static_cast<double>(epochs_done) + part_of_next) / static_cast<double>(epochs);
  return {progress_.epochs + 1, epochs, progress_.steps, done};
}

Report Training::report(const Position& position, const Window::Sums& sums) const {
  return {position, sums.loss / sums.samples, learning_rate_, sums.samples / sums.seconds, {}};
}

Scores Training::evaluate() {
  const std::int64_t samples = workload_.test_samples();
  const auto correct = workload_.count_correct(evaluation_range(samples, group_.rank, group_.size));
  const auto sums = sum_over_ranks(group_, {static_cast<double>(correct)});
  return {{"test_accuracy", sums[0] / static_cast<double>(samples)}};
}

void Training::write_checkpoint(std::int64_t epochs) {
  const auto file = checkpoint_file(checkpoints(), epochs);
  write_whole(file, pack(workload_.model(), optimizer_, progress_));
  thin_out(checkpoints(), epochs, experiment_.checkpoint.keep);
}

}  // namespace

void train(const Experiment& experiment, const Options& options, const Group& group,
           Workload& workload) {
  if (workload.training_samples() < group.size) {
    throw UsageError(fmt::format("{} training samples are too few for {} ranks",
                                 workload.training_samples(), group.size));
  }
  Training(experiment, options, group, workload).run();
}

}  // namespace dtool::trainer
