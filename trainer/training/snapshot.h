// The content of a checkpoint: everything that the rest of a run depends on, in LibTorch's archive
// format, which torch.jit.load reads in Python.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/training/optimizer.h"
#include "trainer/training/progress.h"

namespace dtool::trainer {

/// Copies in the CPU's memory: training may go on.
struct Snapshot {
  std::vector<NamedTensor> model;  ///< parameters, then buffers
  OptimizerKind kind{};
  Optimizer::State optimizer;
  Progress progress;
  std::vector<NamedTensor> others;  ///< other state of this kind of workload

  std::int64_t bytes() const;
};

Snapshot take_snapshot(const Weights& model, Optimizer& optimizer, const Progress& progress,
                       const std::vector<NamedTensor>& others = {});

/// The archive's bytes.
std::string pack(const Snapshot& snapshot);

/// The parts that are returned rather than restored in place.
struct Unpacked {
  Progress progress;
  std::vector<NamedTensor> others;
};

/// Restores model and optimizer; `name` is for messages. Throws UsageError if the bytes are not
/// such an archive, or belong to another model or optimizer; the model may then be partly filled.
Unpacked unpack(const std::string& bytes, const std::string& name, Weights& model,
                Optimizer& optimizer);

/// The same for a model that will not be trained further.
Progress unpack_model(const std::string& bytes, const std::string& name, Weights& model);

}  // namespace dtool::trainer
