// SPDX-License-Identifier: MIT
// The numbers are sent and stored in checkpoints in the order of the fields.
#include "trainer/objectnav/agent/experience.h"

namespace dtool::trainer {
namespace {

/// The fields that are whole numbers, then the others.
constexpr std::int64_t EpisodeSums::*kCounts[] = {&EpisodeSums::episodes, &EpisodeSums::successes,
                                                  &EpisodeSums::steps};
constexpr double EpisodeSums::*kEpisodeSums[] = {&EpisodeSums::spl, &EpisodeSums::reward};
constexpr double ExperienceSums::*kSums[] = {
    &ExperienceSums::steps,      &ExperienceSums::rollouts, &ExperienceSums::cut_short,
    &ExperienceSums::collecting, &ExperienceSums::learned,  &ExperienceSums::policy_loss,
    &ExperienceSums::value_loss, &ExperienceSums::entropy,  &ExperienceSums::divergence,
    &ExperienceSums::clipped};

void add_mean(Scores& scores, const char* name, double sum, double count) {
  if (count > 0) scores.emplace_back(name, sum / count);
}

}  // namespace

std::vector<double> numbers_of(const ExperienceSums& sums) {
  std::vector<double> numbers;
  for (const auto field : kCounts) numbers.push_back(static_cast<double>(sums.episodes.*field));
  for (const auto field : kEpisodeSums) numbers.push_back(sums.episodes.*field);
  for (const auto field : kSums) numbers.push_back(sums.*field);
  return numbers;
}

ExperienceSums sums_of(const std::vector<double>& numbers) {
  ExperienceSums sums;
  std::size_t next = 0;
  for (const auto field : kCounts) {
    sums.episodes.*field = static_cast<std::int64_t>(numbers.at(next++));
  }
  for (const auto field : kEpisodeSums) sums.episodes.*field = numbers.at(next++);
  for (const auto field : kSums) sums.*field = numbers.at(next++);
  return sums;
}

void ExperienceSums::operator+=(const ExperienceSums& other) {
  auto numbers = numbers_of(*this);
  const auto others = numbers_of(other);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] += others[i];
  *this = sums_of(numbers);
}

double mean_loss(const ExperienceSums& sums, const PpoSettings& settings) {
  return (sums.policy_loss + settings.value_loss_coef * sums.value_loss -
          settings.entropy_coef * sums.entropy) /
         sums.learned;
}

Scores scores_of(const ExperienceSums& sums) {
  const EpisodeSums& ended = sums.episodes;
  const auto episodes = static_cast<double>(ended.episodes);
  Scores scores;
  add_mean(scores, "train_success", static_cast<double>(ended.successes), episodes);
  add_mean(scores, "train_spl", ended.spl, episodes);
  return scores;
}

Scores details_of(const ExperienceSums& sums, double seconds) {
  const EpisodeSums& ended = sums.episodes;
  const auto episodes = static_cast<double>(ended.episodes);
  Scores details;
  add_mean(details, "train_reward", ended.reward, episodes);
  add_mean(details, "episode_steps", static_cast<double>(ended.steps), episodes);
  add_mean(details, "policy_loss", sums.policy_loss, sums.learned);
  add_mean(details, "value_loss", sums.value_loss, sums.learned);
  add_mean(details, "entropy", sums.entropy, sums.learned);
  add_mean(details, "kl", sums.divergence, sums.learned);
  add_mean(details, "clipped", sums.clipped, sums.learned);
  add_mean(details, "cut_short", sums.cut_short, sums.rollouts);
  add_mean(details, "collecting", sums.collecting, seconds);
  return details;
}

}  // namespace dtool::trainer
