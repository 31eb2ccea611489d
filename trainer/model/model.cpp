// SPDX-License-Identifier: MIT
// Chooses between the two kinds of models.
#include "trainer/model/model.h"

#include "trainer/model/network.h"
#include "trainer/model/script_model.h"

namespace dtool::trainer {

std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(named.size());
  for (const NamedTensor& each : named) tensors.push_back(each.tensor);
  return tensors;
}

std::unique_ptr<Model> make_model(const ModelSettings& settings, const DataSets& data,
                                  const Group& group) {
  if (!settings.file.empty()) return std::make_unique<ScriptModel>(settings, data, group.device);
  return std::make_unique<Network>(settings, data, group);
}

}  // namespace dtool::trainer
