#include "trainer/training/checkpoint_keeper.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "trainer/launch/requests.h"
#include "trainer/training/checkpoint_folder.h"
#include "trainer/training/resume.h"
#include "trainer/training/snapshot.h"

namespace dtool::trainer {

bool pass_multiple(std::int64_t before, std::int64_t now, std::int64_t every) {
  return every > 0 && before / every != now / every;
}

CheckpointKeeper::CheckpointKeeper(const Group& group, const Options& options,
                                   const CheckpointSettings& settings, const Weights& model,
                                   Optimizer& optimizer, Progress& progress)
    : group_(group),
      options_(options),
      settings_(settings),
      model_(model),
      optimizer_(optimizer),
      progress_(progress) {}

bool CheckpointKeeper::is_due(std::int64_t steps_before) const {
  return pass_multiple(steps_before, progress_.steps, settings_.every_steps);
}

void CheckpointKeeper::keep(const std::vector<NamedTensor>& others) {
  kept_step_ = progress_.steps;
  if (group_.rank == 0) write(kStep, others);
}

void CheckpointKeeper::take_score(double score, Better better) {
  const double best = progress_.best_score;
  const bool is_better = better == Better::higher ? score > best : score < best;
  if (!std::isnan(best) && !is_better) return;
  progress_.best_score = score;
  if (group_.rank == 0 && settings_.best) write(kBest, {});
}

void CheckpointKeeper::write(const char* kind, const std::vector<NamedTensor>& others) {
  const auto snapshot =
      std::make_shared<const Snapshot>(take_snapshot(model_, optimizer_, progress_, others));
  const auto folder = checkpoints_of(options_);
  const auto step = snapshot->progress.steps;
  const auto keep = settings_.keep;
  if (kind == kBest) {
    writer_.add(
        {kind, step, snapshot->bytes(), [=] { write_whole(folder / "best.pt", pack(*snapshot)); }},
        1);
    return;
  }
  writer_.add({kind, step, snapshot->bytes(),
               [=] {
                 write_whole(checkpoint_file(folder, step), pack(*snapshot));
                 thin_out(folder, step, keep);
               }},
              keep);
}

bool CheckpointKeeper::is_sound() const {
  const auto parameters = model_.parameters();
  return std::ranges::all_of(parameters, [](const NamedTensor& each) {
    return at::isfinite(each.tensor.detach()).all().item<bool>();
  });
}

void CheckpointKeeper::answer(int signal, const std::string& outcome, std::int64_t step,
                              ProgressLog& log) {
  log.note(fmt::format("{}: step {}, since {} came", outcome, step,
                       signal == SIGTERM ? "SIGTERM" : "SIGUSR1"));
  note_request_fulfilled();
  end_if_terminated();
}

}  // namespace dtool::trainer
