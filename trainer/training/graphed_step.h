// SPDX-License-Identifier: MIT
// Replays steps from a CUDA graph: one launch instead of one per operation. For small networks
// launches take most of a step's time.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/settings/train_settings.h"
#include "trainer/training/optimizer.h"

namespace dtool::trainer {

/// Whether steps are replayed. Throws UsageError if that is required (`on`) but the run is on CPUs,
/// or its update cannot be replayed. With `automatic` they are replayed on GPUs.
bool plays_back(const CudaGraphSetting& setting, at::Device device,
                Replay of_update = Replay::right);

/// Runs a step operation by operation until enough steps had inputs of the same sizes (the first
/// steps measure, allocate and connect). Then it records a step, and from then on replays it for
/// inputs of these sizes.
class GraphedStep {
 public:
  /// A step's work on the device. Values that change from step to step must come from the inputs,
  /// or be in tensors that stay in place; results go into such tensors.
  using Work = std::function<void(const std::vector<at::Tensor>& inputs)>;

  /// Records `work` without executing it; the result executes it. It is `gpu::record`, except in
  /// tests.
  using Record = std::function<std::function<void()>(const std::function<void()>& work)>;

  /// Is told why a step could not be recorded.
  using GiveUp = std::function<void(const std::string& reason)>;

  /// The recording has its inputs on `device`. `off` is what does without a graph, for messages.
  /// Without `give_up`, a step that cannot be recorded ends the run.
  GraphedStep(at::Device device, std::string off, Work work, Record record,
              GiveUp give_up = nullptr);

  /// Runs `work` with `inputs` once. If it cannot be recorded, calls `give_up`, and this step and
  /// all others run operation by operation; without `give_up` throws std::runtime_error. Inputs
  /// in pinned memory must keep their values until the device has done the step.
  void run(const std::vector<at::Tensor>& inputs);

  /// For work that is another from now on: records it anew.
  void forget();

  /// Steps before one is recorded; c10d's reducer needs them to sort its buckets and to measure.
  static constexpr int kWarmUp = 11;

 private:
  using Sizes = std::vector<std::vector<std::int64_t>>;
  bool fits(const std::vector<at::Tensor>& inputs) const;
  void record(const std::vector<at::Tensor>& inputs);

  at::Device device_;
  std::string off_;
  Work work_;
  Record record_;  ///< empty once it has failed
  GiveUp give_up_;
  Sizes sizes_;                     ///< the sizes of the last step's inputs
  int steps_alike_ = 0;             ///< how many steps in a row had these sizes
  std::vector<at::Tensor> inputs_;  ///< the tensors that the recording reads
  std::function<void()> play_;      ///< empty until a step is recorded
};

/// A step that is replayed where `setting` wants that; absent where steps run operation by
/// operation. `note` is told why one could not be recorded that need not be. Throws as
/// `plays_back`.
std::optional<GraphedStep> graphed_step(const CudaGraphSetting& setting, at::Device device,
                                        Replay of_update, GraphedStep::Work work,
                                        GraphedStep::GiveUp note);

}  // namespace dtool::trainer
