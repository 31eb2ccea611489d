// SPDX-License-Identifier: MIT
#include "trainer/training/checkpoint_keeper.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cmath>

#include "trainer/launch/requests.h"
#include "trainer/report/written_file.h"
#include "trainer/training/checkpoint_writer.h"
#include "trainer/training/snapshot.h"

namespace dtool::trainer {

bool pass_multiple(std::int64_t before, std::int64_t now, std::int64_t every) {
  return every > 0 && before / every != now / every;
}

namespace {

/// The disk may take a while, but the other ranks wait in an exchange meanwhile.
std::chrono::milliseconds patience(std::chrono::seconds collective_timeout) {
  using std::chrono::milliseconds;
  return std::min(milliseconds(1000), milliseconds(collective_timeout) / 10);
}

}  // namespace

CheckpointKeeper::CheckpointKeeper(const Group& group, const CommandLine& options,
                                   const CheckpointSettings& settings,
                                   std::chrono::seconds collective_timeout, const Weights& model,
                                   Optimizer& optimizer, Progress& progress)
    : group_(group),
      options_(options),
      settings_(settings),
      model_(model),
      optimizer_(optimizer),
      progress_(progress) {
  check_types(model_);
  if (group_.rank == 0) writer_.emplace(patience(collective_timeout));
}

bool CheckpointKeeper::is_due(std::int64_t steps_before) const {
  return pass_multiple(steps_before, progress_.steps, settings_.every_steps);
}

/// The best model's and the step's are one copy.
Snapshot CheckpointKeeper::snapshot(const std::vector<NamedTensor>& others) {
  auto trained = copied_step_ == progress_.steps ? copied_.lock() : nullptr;
  if (!trained) trained = std::make_shared<const TrainedState>(copy_state(model_, optimizer_));
  copied_ = trained;
  copied_step_ = progress_.steps;
  return take_snapshot(std::move(trained), progress_, others);
}

void CheckpointKeeper::keep(const std::vector<NamedTensor>& others) {
  kept_step_ = progress_.steps;
  if (!writer_) return;
  writer_->submit(CheckpointWriter::Kind::step, progress_.steps,
                  [folder = checkpoints_of(options_), keep = settings_.keep,
                   kept = std::make_shared<const Snapshot>(snapshot(others))] {
                    const auto step = kept->progress.steps;
                    write_whole(checkpoint_file(folder, step),
                                [&](const Sink& sink) { write(*kept, sink); });
                    thin_out(folder, step, keep);
                  });
}

void CheckpointKeeper::take_score(double score, Better better) {
  const double best = progress_.best_score;
  const bool is_better = better == Better::higher ? score > best : score < best;
  if (!std::isnan(best) && !is_better) return;
  progress_.best_score = score;
  if (!writer_ || !settings_.best) return;
  writer_->submit(CheckpointWriter::Kind::best, progress_.steps,
                  [file = best_checkpoint_file(checkpoints_of(options_)),
                   kept = std::make_shared<const Snapshot>(snapshot({}))] {
                    write_whole(file, [&](const Sink& sink) { write(*kept, sink); });
                  });
}

bool CheckpointKeeper::is_sound() const {
  const auto parameters = model_.parameters();
  return std::ranges::all_of(parameters, [](const NamedTensor& each) {
    return at::isfinite(each.tensor.detach()).all().item<bool>();
  });
}

void CheckpointKeeper::end_request(int signal, std::int64_t step, const char* outcome,
                                   ProgressLog& log) const {
  log.note(fmt::format("{}: step {}, since {} came", outcome, step,
                       signal == SIGTERM ? "SIGTERM" : "SIGUSR1"));
  if (signal == SIGTERM) note_end_is_kept();
}

void CheckpointKeeper::answer(int signal, ProgressLog& log) {
  std::optional<AnswersTermination> answers;
  if (signal == SIGTERM && is_terminated()) answers.emplace();
  requests_.push_back({signal, kept_step_});
  if (signal == SIGTERM) writer_->wait_for(CheckpointWriter::Kind::step);
  tell(log);
  if (signal != SIGTERM || !is_terminated()) return;
  writer_->wait();
  end_if_terminated();
}

/// What was kept before is written first: told of the end, the other ranks end, and their machine
/// ends this one.
void CheckpointKeeper::refuse(int signal, ProgressLog& log) {
  std::optional<AnswersTermination> answers;
  if (signal == SIGTERM && is_terminated()) answers.emplace();
  if (signal == SIGTERM) writer_->wait();
  tell(log);
  end_request(signal, progress_.steps, "no checkpoint, a parameter is nan or infinite", log);
  if (signal == SIGTERM && is_terminated()) end_if_terminated();
}

/// A request is answered by a later state, too, where its own was left out.
void CheckpointKeeper::tell(ProgressLog& log) {
  const auto news = writer_->take_news();
  for (const auto step : news.left_out) {
    log.note(fmt::format(
        "note: the checkpoint of step {} is left out: the disk is slower than checkpoints come",
        step));
  }
  const auto end_answered = [&] {
    std::erase_if(requests_, [&](const Request& each) {
      if (each.step > written_step_) return false;
      end_request(each.signal, written_step_, "checkpoint written", log);
      return true;
    });
  };
  for (const auto step : news.written) {
    written_step_ = step;
    end_answered();
  }
  end_answered();  // one that came after its step was written
}

void CheckpointKeeper::finish(ProgressLog& log) {
  writer_->wait();
  tell(log);
}

}  // namespace dtool::trainer
