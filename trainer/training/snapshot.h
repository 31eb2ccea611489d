// The content of a checkpoint: everything that the rest of a run depends on. LibTorch's archive
// format, which torch.jit.load reads in Python.
#pragma once

#include <string>

#include "trainer/model/model.h"
#include "trainer/training/optimizer.h"
#include "trainer/training/progress.h"

namespace dtool::trainer {

/// The archive's bytes: the model's parameters and buffers, the optimizer's state and `progress`.
std::string pack(const Model& model, Optimizer& optimizer, const Progress& progress);

/// Puts everything back in place and returns the progress; `name` is for messages. Throws
/// UsageError when the bytes are no such archive, or belong to another model or optimizer; the
/// model may then be half filled.
Progress unpack(const std::string& bytes, const std::string& name, Model& model,
                Optimizer& optimizer);

}  // namespace dtool::trainer
