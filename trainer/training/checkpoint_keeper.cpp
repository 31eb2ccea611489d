#include "trainer/training/checkpoint_keeper.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cmath>

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
  if (group_.rank != 0) return;
  const auto folder = checkpoints_of(options_);
  write_whole(checkpoint_file(folder, progress_.steps),
              pack(model_, optimizer_, progress_, others));
  thin_out(folder, progress_.steps, settings_.keep);
}

void CheckpointKeeper::take_score(double score, Better better) {
  const double best = progress_.best_score;
  const bool is_better = better == Better::higher ? score > best : score < best;
  if (!std::isnan(best) && !is_better) return;
  progress_.best_score = score;
  if (group_.rank != 0 || !settings_.best) return;
  write_whole(checkpoints_of(options_) / "best.pt", pack(model_, optimizer_, progress_));
}

bool CheckpointKeeper::is_sound() const {
  const auto parameters = model_.parameters();
  return std::ranges::all_of(parameters, [](const NamedTensor& each) {
    return at::isfinite(each.tensor.detach()).all().item<bool>();
  });
}

void CheckpointKeeper::answer(int signal, const std::string& outcome, ProgressLog& log) const {
  log.note(fmt::format("{}: step {}, since {} came", outcome, progress_.steps,
                       signal == SIGTERM ? "SIGTERM" : "SIGUSR1"));
  note_request_fulfilled();
  end_if_terminated();
}

}  // namespace dtool::trainer
