// What the updates since the last line of the log have come to, over all ranks.
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
  double cut_short = 0;   ///< of them, by stragglers' preemption
  double collecting = 0;  ///< seconds of all ranks, spent on rollouts
  double learned = 0;     ///< steps that the following are of, one for each pass over them
  double policy_loss = 0;
  double value_loss = 0;
  double entropy = 0;
  double divergence = 0;  ///< approximate, of Kullback and Leibler, from the old policy to the new
  double clipped = 0;     ///< share of the probability ratios

  void operator+=(const ExperienceSums& other);
};

/// As numbers to exchange or to keep, and back.
std::vector<double> numbers_of(const ExperienceSums& sums);
ExperienceSums sums_of(const std::vector<double>& numbers);

/// Of the steps that were learned from, as PpoLoss weighs its parts.
double mean_loss(const ExperienceSums& sums, const PpoSettings& settings);

/// How well the agents do, and the rest that is worth a curve: means over episodes, steps or
/// rollouts; those without any are left out. `seconds` are those of all ranks.
Scores scores_of(const ExperienceSums& sums);
Scores details_of(const ExperienceSums& sums, double seconds);

}  // namespace dtool::trainer
