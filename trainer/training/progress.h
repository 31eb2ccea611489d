// SPDX-License-Identifier: MIT
// The progress of a run, which a checkpoint keeps beside the model.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>

namespace dtool::trainer {

struct Progress {
  std::int64_t epochs = 0;        ///< finished ones
  std::int64_t samples = 0;       ///< the samples of the current epoch, over all ranks
  std::int64_t steps = 0;         ///< the optimizer's steps, or steps of experience over all ranks
  std::int64_t rollouts = 0;      ///< rollouts that were learned from
  std::int64_t stage = 0;         ///< the current one, from 0
  std::int64_t stage_epochs = 0;  ///< epochs finished in it
  std::int64_t stage_steps = 0;
  std::uint64_t seed = 0;
  int world_size = 1;
  std::int64_t training_samples = 0;  ///< the number of training samples in the data set
  double best_score = std::numeric_limits<double>::quiet_NaN();  ///< nan: none yet
  /// What environments of others are made of, by name.
  std::map<std::string, std::string> environment = {};
  /// A validation was due after this step and was not made; a run that goes on makes up for it.
  bool validation_is_left = false;
};

}  // namespace dtool::trainer
