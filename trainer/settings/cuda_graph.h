// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "trainer/settings/choice.h"

namespace dtool::trainer {

/// Whether steps are replayed from a CUDA graph.
enum class CudaGraph { automatic, on, off };

struct CudaGraphSetting {
  CudaGraph wanted{};
  std::string key;  ///< in the experiment, such as `train.cuda_graph`

  /// The line that does without, for messages.
  std::string off() const { return key + " = \"off\""; }
};

/// Throws UsageError.
inline CudaGraphSetting read_cuda_graph(TomlReader& reader, const std::string& key) {
  return {choose<CudaGraph>(
              reader, key,
              {{"auto", CudaGraph::automatic}, {"on", CudaGraph::on}, {"off", CudaGraph::off}}),
          key};
}

}  // namespace dtool::trainer
