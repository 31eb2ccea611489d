// SPDX-License-Identifier: MIT
// Replays training steps from a CUDA graph: one launch instead of one per operation. For small
// networks launches take most of a step's time.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <string>
#include <vector>

#include "trainer/data/data_set.h"
#include "trainer/settings/model_settings.h"
#include "trainer/settings/train_settings.h"
#include "trainer/training/optimizer.h"

namespace dtool::trainer {

/// Whether steps are replayed. Throws UsageError if that is required (`on`) but the run is on CPUs,
/// or its update cannot be replayed. With `automatic` they are replayed on GPUs, except for a
/// TorchScript module, whose operations may be impossible to record.
bool plays_back(CudaGraph wanted, ModelKind kind, at::Device device,
                Replay of_update = Replay::right);

/// Runs a step operation by operation until enough steps had batches of the same sizes (the first
/// steps measure, allocate and connect). Then it records a step, and from then on replays it for
/// batches of these sizes.
class GraphedStep {
 public:
  /// A step's work on the device. Values that change from step to step must come from the batches,
  /// or be in tensors that stay in place.
  using Work = std::function<void(const std::vector<Batch>& batches)>;

  /// Records `work` without executing it; the result executes it. It is `gpu::record`, except in
  /// tests.
  using Record = std::function<std::function<void()>(const std::function<void()>& work)>;

  /// Is told why a step could not be recorded.
  using GiveUp = std::function<void(const std::string& reason)>;

  /// Without `give_up`, a step that cannot be recorded ends the run.
  GraphedStep(Work work, Record record, GiveUp give_up = nullptr);

  /// Runs `work` with `batches` once. If it cannot be recorded, calls `give_up`, and this step and
  /// all others run operation by operation; without `give_up` throws std::runtime_error.
  void run(const std::vector<Batch>& batches);

  /// Steps before one is recorded; c10d's reducer needs them to sort its buckets and to measure.
  static constexpr int kWarmUp = 11;

 private:
  void record(const std::vector<Batch>& batches);

  Work work_;
  Record record_;  ///< empty once it has failed
  GiveUp give_up_;
  std::vector<std::int64_t> sizes_;  ///< of the last step's batches
  int steps_alike_ = 0;              ///< how many steps in a row had these sizes
  std::vector<Batch> inputs_;        ///< the tensors that the recording reads
  std::function<void()> play_;       ///< empty until a step is recorded
};

}  // namespace dtool::trainer
