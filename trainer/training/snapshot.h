// The content of a checkpoint: everything that the rest of a run depends on, in LibTorch's archive
// format, which torch.jit.load reads in Python.
#pragma once

#include <string>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/training/optimizer.h"
#include "trainer/training/progress.h"

namespace dtool::trainer {

/// The archive's bytes: the model's parameters and buffers, the optimizer's state, `progress`, and
/// other state of this kind of workload.
std::string pack(const Weights& model, Optimizer& optimizer, const Progress& progress,
                 const std::vector<NamedTensor>& others = {});

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
