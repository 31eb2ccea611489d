// One scalar tensor and a clock.
#include "trainer/loss_window.h"

#include <ATen/ATen.h>

namespace dtool::trainer {

LossWindow::LossWindow(at::Device device)
    : loss_(at::zeros({}, at::TensorOptions(device).dtype(at::kFloat))) {}

void LossWindow::add(const at::Tensor& mean_loss, std::int64_t samples) {
  loss_.add_(mean_loss.detach(), samples);
  samples_ += samples;
}

LossSums LossWindow::take(const Group& group) {
  const auto sums = sum_over_ranks(group, {loss_.item<double>(), static_cast<double>(samples_)});
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  begin_again();
  return {sums[0], sums[1], seconds};
}

void LossWindow::begin_again() {
  loss_.zero_();
  samples_ = 0;
  begin_ = std::chrono::steady_clock::now();
}

}  // namespace dtool::trainer
