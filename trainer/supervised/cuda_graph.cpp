// SPDX-License-Identifier: MIT
// The recording reads its batches from its own tensors; each step's batches are copied into them.
// The requirements of recording:
// https://pytorch.org/docs/stable/notes/cuda.html#whole-network-capture
#include "trainer/supervised/cuda_graph.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <stdexcept>

#include "trainer/ranks/process_group.h"
#include "trainer/ranks/rendezvous.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

std::vector<std::int64_t> sizes_of(const std::vector<Batch>& batches) {
  std::vector<std::int64_t> sizes;
  for (const Batch& each : batches) sizes.push_back(each.size());
  return sizes;
}

}  // namespace

bool plays_back(CudaGraph wanted, ModelKind kind, at::Device device, Replay of_update) {
  if (wanted == CudaGraph::on && !device.is_cuda()) {
    throw UsageError("train.cuda_graph is \"on\", but this run is on CPUs",
                     "leave it out, or make it \"auto\"");
  }
  if (wanted == CudaGraph::on && of_update == Replay::stale) {
    throw UsageError(
        "train.cuda_graph is \"on\", but a recording would repeat one step's learning rate: the "
        "parameters are not all contiguous float32, or LibTorch is older than 2.4",
        "leave it out, or make it \"auto\"");
  }
  if (wanted == CudaGraph::automatic) {
    return device.is_cuda() && kind != ModelKind::torchscript && of_update == Replay::right;
  }
  return wanted == CudaGraph::on;
}

GraphedStep::GraphedStep(Work work, Record record, GiveUp give_up)
    : work_(std::move(work)), record_(std::move(record)), give_up_(std::move(give_up)) {}

void GraphedStep::run(const std::vector<Batch>& batches) {
  auto sizes = sizes_of(batches);
  if (play_ && sizes == sizes_of(inputs_)) {
    for (std::size_t i = 0; i < batches.size(); ++i) {
      inputs_[i].inputs.copy_(batches[i].inputs);
      inputs_[i].targets.copy_(batches[i].targets);
    }
    play_();
    return;
  }
  steps_alike_ = sizes == sizes_ ? steps_alike_ + 1 : 1;
  sizes_ = std::move(sizes);
  if (steps_alike_ > kWarmUp && record_) record(batches);
  if (play_ && sizes_ == sizes_of(inputs_)) {
    play_();
  } else {
    work_(batches);
  }
}

void GraphedStep::record(const std::vector<Batch>& batches) {
  play_ = nullptr;  // gives its memory back before the next recording takes its own
  inputs_.clear();
  for (const Batch& each : batches) inputs_.push_back({each.inputs.clone(), each.targets.clone()});
  try {
    play_ = record_([this] { work_(inputs_); });
  } catch (const CollectiveFailed&) {
    throw;  // a lost peer is no fault of the recording
  } catch (const std::exception& problem) {
    const std::string reason =
        "the step cannot be recorded as a CUDA graph (train.cuda_graph = \"off\" does without): " +
        first_line(problem);
    if (!give_up_) throw std::runtime_error(reason);
    record_ = nullptr;
    inputs_.clear();
    give_up_(reason);
  }
}

}  // namespace dtool::trainer
