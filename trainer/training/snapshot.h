// The content of a checkpoint: everything that the rest of a run depends on. LibTorch's archive
// format, which torch.jit.load reads in Python.
#pragma once

#include <string>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/training/optimizer.h"
#include "trainer/training/progress.h"

namespace dtool::trainer {

/// The archive's bytes: the model's parameters and buffers, the optimizer's state, `progress`, and
/// what else this kind of workload goes on from.
std::string pack(const Weights& model, Optimizer& optimizer, const Progress& progress,
                 const std::vector<NamedTensor>& others = {});

/// Beside what is put back in place.
struct Unpacked {
  Progress progress;
  std::vector<NamedTensor> others;
};

/// Puts model and optimizer back in place; `name` is for messages. Throws UsageError when the bytes
/// are no such archive, or belong to another model or optimizer; the model may then be half filled.
Unpacked unpack(const std::string& bytes, const std::string& name, Weights& model,
                Optimizer& optimizer);

/// The same for a model that is not to be trained on.
Progress unpack_model(const std::string& bytes, const std::string& name, Weights& model);

}  // namespace dtool::trainer
