// SPDX-License-Identifier: MIT
#include "trainer/objectnav/samplers.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "trainer/objectnav/episode.h"

namespace dtool::trainer {

namespace {

/// Sums over ended episodes, as a checkpoint keeps them.
struct Sums {
  std::int64_t episodes = 0;
  std::int64_t successes = 0;
  std::int64_t steps = 0;
  double spl = 0;
  double reward = 0;
};

/// A sampler in a checkpoint. All of one size, so that there is no padding, whose bytes would be
/// anything.
struct Saved {
  std::int64_t number;
  std::int64_t cell;
  std::int64_t heading;
  std::int64_t head;
  std::int64_t previous;
  std::int64_t goal;
  std::int64_t steps;
  std::int64_t moves;
  std::int64_t shortest;
  double reward;
  Sums sums;
};
static_assert(sizeof(Saved) == 15 * 8);

/// Cells in checkpoints count along rows of 48, as when no house had more than 32 cells a side,
/// where all of the settings' houses are so small.
std::int64_t saved_stride(const EnvironmentSettings& settings) {
  return settings.most_side <= 32 ? 48 : kStride;
}

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

}  // namespace

struct alignas(64) Samplers::Sampler {  // no line of the cache is two threads'

  Scene scene;
  Sums sums;
  std::int64_t still_counted = kNoLimit;

  void count(const StepOutcome& end) {
    if (still_counted == 0) return;
    if (still_counted != kNoLimit) --still_counted;
    const Episode& episode = scene.episode;
    ++sums.episodes;
    sums.successes += end.is_success ? 1 : 0;
    sums.steps += episode.steps;
    sums.spl += success_by_path_length(episode, end);
    sums.reward += episode.reward;
  }
};

namespace {

Saved saved(const EnvironmentSettings& settings, const Scene& scene, const Sums& sums) {
  const Episode& episode = scene.episode;
  const std::int64_t row = y_of(episode.cell) + kViewDepth;
  const std::int64_t cell = row * saved_stride(settings) + x_of(episode.cell) + kViewDepth;
  return {scene.number, cell,          episode.heading, episode.head,     episode.previous,
          episode.goal, episode.steps, episode.moves,   episode.shortest, episode.reward,
          sums};
}

/// Throws where the saved episode cannot be one of this scene's.
void restore_scene(const EnvironmentSettings& settings, const Saved& from, Scene& scene) {
  // Its values become rows of tables and are counted up: a file from elsewhere may have any.
  const auto is_within = [](std::int64_t value, std::int64_t end) {
    return value >= 0 && value < end;
  };
  constexpr std::int64_t kMostSteps = std::numeric_limits<int>::max();
  if (!is_within(from.number, kNoLimit) || !is_within(from.heading, 4) ||
      !is_within(from.head, kHeads) || !is_within(from.previous, kPreviousActions) ||
      !is_within(from.steps, kMostSteps) || !is_within(from.moves, kMostSteps)) {
    throw std::runtime_error("the environments' state has numbers that no episode has");
  }
  begin_episode(settings, scene, from.number);
  Episode& episode = scene.episode;
  const std::int64_t stride = saved_stride(settings);
  const bool is_within_grid = from.cell >= 0 && from.cell < stride * stride;
  const auto cell =
      static_cast<Cell>(is_within_grid ? from.cell / stride * kStride + from.cell % stride : 0);
  if (!scene.house.is_free(cell) || from.goal != episode.goal ||
      from.shortest != episode.shortest) {
    throw std::runtime_error(
        "the environments' state is of other houses: of another seed or other settings");
  }
  episode.cell = cell;
  episode.heading = turned(static_cast<Heading>(from.heading), 0);
  episode.head = static_cast<std::uint8_t>(from.head);
  episode.previous = static_cast<std::uint8_t>(from.previous);
  episode.steps = static_cast<int>(from.steps);
  episode.moves = static_cast<int>(from.moves);
  episode.reward = from.reward;
}

}  // namespace

const EnvironmentSpec& objectnav_spec(Senses senses) {
  const auto codes = [](const char* name, std::int64_t bytes, std::int64_t kinds) {
    return Observed{name, {bytes}, ObservedKind::codes, kinds};
  };
  const auto spec_with = [&](const Observed& view) {
    return EnvironmentSpec{
        {view, codes("goal", 1, kObjectClasses), codes("previous action", 1, kPreviousActions),
         codes("head", 1, kHeads)},
        {{kActions}, {}, {}},
        {"success", "spl"}};
  };
  static const EnvironmentSpec of_cells = spec_with(codes("seen", kViewCells, kSeenKinds));
  static const EnvironmentSpec of_pictures =
      spec_with({"camera", {kPicturePlanes, kPictureSide, kPictureSide}, ObservedKind::pixels, 0});
  return senses == Senses::cells ? of_cells : of_pictures;
}

Samplers::Samplers(const EnvironmentSettings& settings, EpisodeSet set, std::uint64_t seed,
                   std::int64_t first_sampler, int count, int threads)
    : ThreadedEnvironments(threads),
      settings_(settings),
      samplers_(static_cast<std::size_t>(count)) {
  for (std::size_t i = 0; i < samplers_.size(); ++i) {
    Scene& scene = samplers_[i].scene;
    scene.set = set;
    scene.seed = seed;
    scene.sampler = first_sampler + static_cast<std::int64_t>(i);
    begin_episode(settings_, scene, 0);
  }
}

Samplers::~Samplers() {
  end_threads();
}

int Samplers::count() const {
  return static_cast<int>(samplers_.size());
}

void Samplers::observe(std::span<std::uint8_t> observations) const {
  const auto bytes = static_cast<std::size_t>(observation_bytes(settings_.senses));
  assert(observations.size() == samplers_.size() * bytes);
  std::uint8_t* next = observations.data();
  for (const Sampler& each : samplers_) {
    dtool::trainer::observe(settings_, each.scene.house, each.scene.episode, next);
    next += bytes;
  }
}

void Samplers::step(int begin, int end, const StepArrays& arrays) {
  const auto [actions, rewards, endings, observations, last_observations] = arrays;
  assert(0 <= begin && begin <= end && end <= count());
  assert(actions.size() == samplers_.size() && rewards.size() == samplers_.size());
  assert(endings.size() == samplers_.size());
  const auto bytes = static_cast<std::size_t>(observation_bytes(settings_.senses));
  assert(observations.size() == samplers_.size() * bytes);
  assert(last_observations.size() == observations.size());
  for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
    assert(actions[i] >= 0 && actions[i] < kActions);
    Scene& scene = samplers_[i].scene;
    const auto move = static_cast<Move>(static_cast<std::uint8_t>(actions[i]));
    const StepOutcome outcome = take_step(settings_, move, scene);
    rewards[i] = outcome.reward;
    endings[i] = !outcome.has_ended   ? Ending::none
                 : move == Move::done ? Ending::terminated
                                      : Ending::truncated;  // the step limit
    if (endings[i] == Ending::truncated) {
      dtool::trainer::observe(settings_, scene.house, scene.episode, &last_observations[i * bytes]);
    }
    if (outcome.has_ended) {
      samplers_[i].count(outcome);
      begin_episode(settings_, scene, scene.number + 1);
    }
    dtool::trainer::observe(settings_, scene.house, scene.episode, &observations[i * bytes]);
  }
}

/// A scene is a house.
void Samplers::advance() {
  for (Sampler& each : samplers_) {
    const std::int64_t house = each.scene.number / settings_.episodes_per_house + 1;
    begin_episode(settings_, each.scene, house * settings_.episodes_per_house);
  }
}

EpisodeSums Samplers::take_sums() {
  EpisodeSums all;
  for (Sampler& each : samplers_) {
    const Sums sums = std::exchange(each.sums, {});
    const auto number = [](std::int64_t count) { return static_cast<double>(count); };
    all += {
        number(sums.episodes), number(sums.steps), sums.reward, {number(sums.successes), sums.spl}};
  }
  return all;
}

void Samplers::count_only(std::int64_t each) {
  for (Sampler& sampler : samplers_) sampler.still_counted = each;
}

bool Samplers::counted_all() const {
  return std::all_of(samplers_.begin(), samplers_.end(),
                     [](const Sampler& each) { return each.still_counted == 0; });
}

std::vector<std::uint8_t> Samplers::state() const {
  std::vector<std::uint8_t> state(samplers_.size() * sizeof(Saved));
  for (std::size_t i = 0; i < samplers_.size(); ++i) {
    const Saved one = saved(settings_, samplers_[i].scene, samplers_[i].sums);
    std::memcpy(&state[i * sizeof one], &one, sizeof one);
  }
  return state;
}

GoesOn Samplers::restore(const std::vector<std::uint8_t>& state) {
  const std::size_t count = state.size() / sizeof(Saved);
  if (state.size() % sizeof(Saved) != 0 || count > samplers_.size()) {
    throw std::runtime_error("the environments' state is of another number of samplers");
  }
  const auto end = samplers_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<Sampler> restored(samplers_.begin(), end);
  for (std::size_t i = 0; i < count; ++i) {
    Saved one;
    std::memcpy(&one, &state[i * sizeof one], sizeof one);
    restore_scene(settings_, one, restored[i].scene);
    restored[i].sums = one.sums;
  }
  std::copy(restored.begin(), restored.end(), samplers_.begin());
  return GoesOn::exactly;
}

}  // namespace dtool::trainer
