// SPDX-License-Identifier: MIT
// Chooses between the two kinds of models.
#include "trainer/model/model.h"

#include <fmt/format.h>

#include "trainer/model/network.h"
#include "trainer/model/script_model.h"

namespace dtool::trainer {

namespace {

/// The code of an exported module is its own: its batch norms cannot be made to look at other
/// ranks.
void tell_batch_norm_of_each_rank(const Model& module) {
  for (const auto& [name, tensor] : module.buffers()) {
    if (!name.ends_with("running_mean")) continue;
    fmt::print(
        "note: batch norm in the module ({}) is over each rank's own batch, so several ranks train "
        "otherwise than one; a built-in model's is over all ranks\n",
        name);
    return;
  }
}

}  // namespace

std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(named.size());
  for (const NamedTensor& each : named) tensors.push_back(each.tensor);
  return tensors;
}

std::unique_ptr<Model> make_model(const ModelSettings& settings, const DataSets& data,
                                  const Group& group) {
  if (!settings.file.empty()) {
    auto module = std::make_unique<ScriptModel>(settings, data, group.device);
    if (group.size > 1 && group.rank == 0) tell_batch_norm_of_each_rank(*module);
    return module;
  }
  return std::make_unique<Network>(settings, data, group);
}

}  // namespace dtool::trainer
