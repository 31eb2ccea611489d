// SPDX-License-Identifier: MIT
// Read it from the top: `run` prepares or resumes, then takes step after step.
#include "trainer/training/training.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <iterator>
#include <optional>

#include "trainer/launch/requests.h"
#include "trainer/report/metrics.h"
#include "trainer/report/written_file.h"
#include "trainer/training/snapshot.h"

namespace dtool::trainer {

namespace {

/// One run of the loop, with everything that lives as long as it.
class Training {
 public:
  Training(const Run& run, Workload& workload)
      : run_(run),
        workload_(workload),
        progress_(workload.progress),
        keeper_(run.group, run.options, run.experiment.checkpoint,
                run.experiment.distributed.collective_timeout, workload.model(),
                workload.optimizer(), progress_) {}

  void run();

 private:
  void resume();
  void open_log();
  void step();
  /// False: it was left, since a rank was told to end.
  bool evaluate();
  void keep_checkpoint();
  void answer(int signal);

  bool keeps_checkpoints() const {
    return run_.experiment.checkpoint.every_epochs + run_.experiment.checkpoint.every_steps > 0;
  }
  ProgressLog* log() { return log_ ? &*log_ : nullptr; }

  const Run& run_;
  Workload& workload_;
  Progress& progress_;
  CheckpointKeeper keeper_;
  std::optional<ProgressLog> log_;  ///< rank 0 only
  std::string resumed_from_;
  Scores scores_;  ///< the scores of the last evaluation
};

void Training::run() {
  if (run_.group.rank == 0) std::filesystem::create_directories(checkpoints_of(run_.options));
  progress_.seed = run_.options.seed;
  progress_.world_size = run_.group.size;
  if (run_.options.checkpoint) resume();
  workload_.begin();
  open_log();
  if (workload_.is_over() || progress_.validation_is_left) {
    evaluate();
    if (!workload_.is_over()) workload_.restart_clock();
  }
  if (keeps_checkpoints()) await_requests();
  while (!workload_.is_over()) step();
  if (log_) keeper_.finish(*log_);
  // A request at the end is answered by the last checkpoint.
  if (log_ && keeper_.kept_step() == progress_.steps) answer(take_request());
  await_no_requests();
  if (!log_) return;
  if (scores_.empty())
    throw RunFailed("the last validation was left, since a rank was told to end");
  write_whole(run_.options.output_dir / "trained_model.pt", workload_.model().exported());
  log_->finish(scores_);
}

void Training::resume() {
  const Resumed resumed = resume_from(run_.options, run_.group, workload_.model(),
                                      workload_.optimizer(), progress_, workload_.stages());
  resumed_from_ = resumed.from;
  progress_ = resumed.progress;
  if (!resumed_from_.empty()) workload_.restore(resumed.others);
}

void Training::open_log() {
  if (run_.group.rank != 0) return;
  const auto tensorboard = run_.experiment.log_tensorboard ? TensorBoard::on : TensorBoard::off;
  const Position position = workload_.position();
  const auto environment = run_.options.output_dir / "environment.json";
  if (progress_.environment.empty()) {
    std::filesystem::remove(environment);  // an earlier run's
  } else {
    write_whole(environment,
                to_json({progress_.environment.begin(), progress_.environment.end()}) + "\n");
  }
  log_.emplace(
      run_.options.output_dir, tensorboard,
      RunStart{run_.options.seed, run_.group.size, resumed_from_, position.step, position.done});
  if (resumed_from_.empty()) return;
  const auto epoch = position.epoch > 0 ? fmt::format("epoch {}, ", position.epoch) : "";
  log_->note(fmt::format("resumed from {} at {}step {}", resumed_from_, epoch, position.step));
}

void Training::step() {
  const auto before = progress_.steps;
  const Advance done = workload_.advance([&] { return log_ ? take_request() : 0; }, log());
  if (log_) log_->tick(workload_.position());
  const bool is_last = workload_.is_over();
  Due due;
  due.line = pass_multiple(before, progress_.steps, run_.experiment.log_every_steps);
  due.evaluation = is_last || done.evaluation_is_due;
  due.checkpoint =
      keeps_checkpoints() && (is_last || done.checkpoint_is_due || keeper_.is_due(before));
  workload_.tell(due, log());
  int request = done.request;
  if (due.evaluation && !evaluate()) request = SIGTERM;  // all ranks know it
  workload_.close(due, scores_, log());
  if (due.checkpoint) keep_checkpoint();
  if (due.evaluation || due.checkpoint) workload_.restart_clock();
  answer(request);
  if (log_) keeper_.tell(*log_);
}

bool Training::evaluate() {
  const Evaluation evaluation = workload_.evaluate(log());
  scores_ = evaluation.scores;
  progress_.validation_is_left = scores_.empty();
  if (scores_.empty()) return false;
  keeper_.take_score(scores_.back().second, evaluation.better);
  return true;
}

void Training::keep_checkpoint() {
  keeper_.keep(workload_.others());
}

/// A state that cannot be resumed from is not saved. The loss would show that, but it may not have
/// been checked, since that takes all ranks.
void Training::answer(int signal) {
  if (signal == 0) return;
  const bool is_sound = keeper_.is_sound();
  if (is_sound && keeper_.kept_step() != progress_.steps) keep_checkpoint();
  if (!log_) return;
  if (is_sound) {
    keeper_.answer(signal, *log_);
  } else {
    keeper_.refuse(signal, *log_);
  }
}

}  // namespace

void train(const Run& run, Workload& workload) {
  Training(run, workload).run();
}

#define DTOOL_WORKLOAD(word, folder)   \
  namespace folder {                   \
  extern const WorkloadRunner kRunner; \
  }
#include "trainer/settings/workloads.def"
#undef DTOOL_WORKLOAD

const WorkloadRunner& runner_of(const Experiment& experiment) {
  struct Row {
    const char* word;
    const WorkloadRunner* runner;
  };
  static const Row rows[] = {
#define DTOOL_WORKLOAD(word, folder) {#word, &folder::kRunner},
#include "trainer/settings/workloads.def"
#undef DTOOL_WORKLOAD
  };
  const auto* row = std::ranges::find(rows, experiment.workload, &Row::word);
  assert(row != std::end(rows));
  return *row->runner;
}

}  // namespace dtool::trainer
