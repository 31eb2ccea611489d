// SPDX-License-Identifier: MIT
// The results of the updates since the last line of the log, over all ranks.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "trainer/objectnav/samplers.h"
#include "trainer/ranks/process_group.h"
#include "trainer/reinforcement/ppo_settings.h"
#include "trainer/report/progress_log.h"

namespace dtool::trainer {

/// Sums, so that they can be added up over ranks and updates.
struct ExperienceSums {
  double steps = 0;
  EpisodeSums episodes;   ///< that ended
  double rollouts = 0;    ///< of all ranks
  double cut_short = 0;   ///< how many of them were cut short because of stragglers
  double collecting = 0;  ///< seconds of all ranks, spent on rollouts
  double learned = 0;     ///< steps of the following sums; each step counts once per pass
  double policy_loss = 0;
  double value_loss = 0;
  double entropy = 0;
  double divergence = 0;  ///< approximate Kullback-Leibler divergence from the old policy to the
                          ///< new
  double clipped = 0;     ///< share of the probability ratios

  void operator+=(const ExperienceSums& other);
};

/// Converts the sums to numbers for exchange and storage, and back.
std::vector<double> numbers_of(const ExperienceSums& sums);
ExperienceSums sums_of(const std::vector<double>& numbers);

/// The loss of the steps that were learned from, with the weights of PpoLoss.
double mean_loss(const ExperienceSums& sums, const PpoSettings& settings);

/// How well the agents do, and other values worth a curve: means over episodes, steps or rollouts.
/// Means over nothing are left out. `seconds` are those of all ranks.
Scores scores_of(const ExperienceSums& sums);
Scores details_of(const ExperienceSums& sums, double seconds);

}  // namespace dtool::trainer
