// SPDX-License-Identifier: MIT
// Sums in double precision on the host; a GPU's losses are fetched together.
#include "trainer/supervised/loss_window.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace dtool::trainer {
namespace {

/// So many losses wait on a GPU at most, however seldom a line is logged.
constexpr std::size_t kMostPending = 4096;

}  // namespace

void LossWindow::add(const at::Tensor& mean_loss, std::int64_t samples, std::int64_t step) {
  if (mean_loss.is_cpu()) return count(mean_loss.item<double>(), samples, step);
  // A copy, since the loss's maker may put the next step's loss into the same memory.
  pending_.push_back({mean_loss.detach().clone(), samples, step});
  if (pending_.size() == kMostPending) fetch_pending();
}

void LossWindow::count(double mean_loss, std::int64_t samples, std::int64_t step) {
  sums_.loss += mean_loss * static_cast<double>(samples);
  sums_.samples += static_cast<double>(samples);
  if (!std::isfinite(mean_loss)) sums_.first_bad_step = std::min(sums_.first_bad_step, step);
}

void LossWindow::fetch_pending() {
  if (pending_.empty()) return;
  std::vector<at::Tensor> losses;
  for (const Pending& each : pending_) losses.push_back(each.mean_loss);
  const at::Tensor fetched = at::stack(losses).to(at::kDouble).cpu();
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    count(fetched.data_ptr<double>()[i], pending_[i].samples, pending_[i].step);
  }
  pending_.clear();
}

LossSums LossWindow::take(const Group& group) {
  fetch_pending();
  LossSums sums = sums_;
  const auto over_ranks = sum_over_ranks(group, {sums.loss, sums.samples});
  sums.loss = over_ranks[0];
  sums.samples = over_ranks[1];
  sums.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  begin_again();
  return sums;
}

void LossWindow::begin_again() {
  pending_.clear();
  sums_ = {};
  begin_ = std::chrono::steady_clock::now();
}

std::string where_the_loss_was_lost(const Group& group, std::int64_t epoch, const LossSums& sums) {
  std::vector<double> steps(static_cast<std::size_t>(group.size), 0);
  steps[static_cast<std::size_t>(group.rank)] = static_cast<double>(sums.first_bad_step);
  steps = sum_over_ranks(group, steps);
  const auto first = std::min_element(steps.begin(), steps.end());
  const Member& member = group.members[static_cast<std::size_t>(first - steps.begin())];
  return fmt::format(
      "the loss is no longer a number at epoch {}, step {:.0f}, on rank {} (machine {}, {})", epoch,
      *first, member.rank, member.machine, member.host);
}

}  // namespace dtool::trainer
