// Plays training steps back from a CUDA graph: one launch instead of one for each of a step's
// operations, which for small networks is most of a step's time.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <vector>

#include "trainer/data/data_set.h"
#include "trainer/settings/model_settings.h"
#include "trainer/settings/train_settings.h"

namespace dtool::trainer {

/// Whether steps are to be played back. Throws UsageError if that is wanted (`on`) but the run
/// is on CPUs. With `automatic` they are on GPUs, unless the model is a TorchScript module, which
/// may do what cannot be recorded.
bool plays_back(CudaGraph wanted, ModelKind kind, at::Device device);

/// Does a step operation by operation until it has done it often enough with batches of the same
/// sizes (a first step measures, allocates and connects), then records it, and from then on plays
/// it back for batches of these sizes.
class GraphedStep {
 public:
  /// A step's work on the device. What changes from step to step has to come from the batches, or
  /// lie in tensors that stay where they are.
  using Work = std::function<void(const std::vector<Batch>& batches)>;

  /// Records `work` without doing it; the result does it. `gpu::record`, but for tests.
  using Record = std::function<std::function<void()>(const std::function<void()>& work)>;

  GraphedStep(Work work, Record record);

  /// Does `work` with `batches`, once. Throws std::runtime_error when it cannot be recorded.
  void run(const std::vector<Batch>& batches);

  /// Steps before one is recorded; c10d's reducer sorts its buckets and takes its times in them.
  static constexpr int kWarmUp = 11;

 private:
  void record(const std::vector<Batch>& batches);

  Work work_;
  Record record_;
  std::vector<std::int64_t> sizes_;  ///< of the last step's batches
  int steps_alike_ = 0;              ///< how many steps in a row had these
  std::vector<Batch> inputs_;        ///< what the recording reads
  std::function<void()> play_;       ///< empty until a step is recorded
};

}  // namespace dtool::trainer
