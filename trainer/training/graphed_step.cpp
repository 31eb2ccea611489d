// SPDX-License-Identifier: MIT
// The recording reads its inputs from its own tensors; each step's inputs are copied into them.
// The requirements of recording:
// https://pytorch.org/docs/stable/notes/cuda.html#whole-network-capture
#include "trainer/training/graphed_step.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <stdexcept>

#include "trainer/ranks/gpu.h"
#include "trainer/ranks/process_group.h"
#include "trainer/ranks/rendezvous.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

bool plays_back(const CudaGraphSetting& setting, at::Device device, Replay of_update) {
  const std::string is_on = setting.key + " is \"on\", but ";
  if (setting.wanted == CudaGraph::on && !device.is_cuda()) {
    throw UsageError(is_on + "this run is on CPUs", "leave it out, or make it \"auto\"");
  }
  if (setting.wanted == CudaGraph::on && of_update == Replay::stale) {
    throw UsageError(is_on +
                         "a recording would repeat one step's learning rate: the parameters are "
                         "not all contiguous float32, or LibTorch is older than 2.4",
                     "leave it out, or make it \"auto\"");
  }
  if (setting.wanted == CudaGraph::automatic) return device.is_cuda() && of_update == Replay::right;
  return setting.wanted == CudaGraph::on;
}

GraphedStep::GraphedStep(at::Device device, std::string off, Work work, Record record,
                         GiveUp give_up)
    : device_(device),
      off_(std::move(off)),
      work_(std::move(work)),
      record_(std::move(record)),
      give_up_(std::move(give_up)) {}

void GraphedStep::forget() {
  play_ = nullptr;
  steps_alike_ = 0;
}

/// Whether there is a recording for inputs of these sizes.
bool GraphedStep::fits(const std::vector<at::Tensor>& inputs) const {
  return play_ &&
         std::ranges::equal(inputs, inputs_, [](const at::Tensor& one, const at::Tensor& other) {
           return one.sizes() == other.sizes();
         });
}

void GraphedStep::run(const std::vector<at::Tensor>& inputs) {
  if (fits(inputs)) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      inputs_[i].copy_(inputs[i], /*non_blocking=*/true);
    }
    play_();
    return;
  }
  Sizes sizes;
  for (const at::Tensor& each : inputs) sizes.push_back(each.sizes().vec());
  steps_alike_ = sizes == sizes_ ? steps_alike_ + 1 : 1;
  sizes_ = std::move(sizes);
  if (steps_alike_ > kWarmUp && record_) record(inputs);
  if (fits(inputs)) {
    play_();
  } else {
    work_(inputs);
  }
}

void GraphedStep::record(const std::vector<at::Tensor>& inputs) {
  play_ = nullptr;  // gives its memory back before the next recording takes its own
  inputs_.clear();
  for (const at::Tensor& each : inputs) {
    inputs_.push_back(each.to(device_, each.scalar_type(), /*non_blocking=*/false, /*copy=*/true));
  }
  try {
    play_ = record_([this] { work_(inputs_); });
  } catch (const CollectiveFailed&) {
    throw;  // a lost peer is no fault of the recording
  } catch (const std::exception& problem) {
    const std::string reason = "the step cannot be recorded as a CUDA graph (" + off_ +
                               " does without): " + first_line(problem);
    if (!give_up_) throw std::runtime_error(reason);
    record_ = nullptr;
    inputs_.clear();
    give_up_(reason);
  }
}

std::optional<GraphedStep> graphed_step(const CudaGraphSetting& setting, at::Device device,
                                        Replay of_update, GraphedStep::Work work,
                                        GraphedStep::GiveUp note) {
  if (!plays_back(setting, device, of_update)) return std::nullopt;
  if (setting.wanted == CudaGraph::on) note = nullptr;
  return GraphedStep(device, setting.off(), std::move(work), gpu::record, std::move(note));
}

}  // namespace dtool::trainer
