// SPDX-License-Identifier: MIT
// Read it from `begin` on: workers are rung, step and ring back; their results are checked.
#include "trainer/environments/process_environments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "trainer/data/sampler.h"
#include "trainer/environments/environment_worker.h"
#include "trainer/report/console.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kPurpose = 0x657069736f646573;  // "episodes"
constexpr int kMostRestarts = 3;
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

}  // namespace

/// One environment.
struct ProcessEnvironments::Slot {
  std::int64_t next = 0;    ///< the number of its next episode
  std::int64_t seeded = 0;  ///< the last episode that began with its own seed
  double steps = 0;         ///< of this episode
  double reward = 0;        ///< of this episode
  bool is_new = true;       ///< it begins an episode when its worker is rung next
  EpisodeSums sums;
  std::int64_t still_counted = kNoLimit;
};

struct ProcessEnvironments::Worker {
  int begin = 0;  ///< its environments among the rank's
  int end = 0;
  std::unique_ptr<EnvironmentWorker> process;
  WorkerLayout layout;
  std::optional<WorkerRing> rung;  ///< what it has not answered yet
  bool spoke_unasked = false;      ///< before it was rung
  Clock::time_point deadline;

  template <class Value>
  Value* array(std::int64_t offset) const {
    return reinterpret_cast<Value*>(process->memory() + offset);
  }
};

ProcessEnvironments::ProcessEnvironments(const WorkerSettings& settings, EpisodeSet set,
                                         std::uint64_t seed, std::int64_t first, int count,
                                         int workers)
    : settings_(settings),
      set_(set),
      seed_(seed),
      first_(first),
      slots_(static_cast<std::size_t>(count)),
      workers_(static_cast<std::size_t>(std::clamp(workers, 1, std::max(count, 1)))) {
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    workers_[i].begin = static_cast<int>(slots_.size() * i / workers_.size());
    workers_[i].end = static_cast<int>(slots_.size() * (i + 1) / workers_.size());
  }
  try {
    // All start at once, which may take each of them seconds.
    for (Worker& each : workers_) start(each);
    hear_all(&ProcessEnvironments::greet);
    hear_all(&ProcessEnvironments::hear);
  } catch (const WorkerFailed& failure) {
    throw UsageError(
        fmt::format("environment {}: its worker {}", settings_.name, failure.what()),
        !failure.hint.empty() ? failure.hint
        : settings_.command.empty()
            ? "environment.python names the Python that has the environment, on every machine"
            : "");
  }
}

/// Of a mistake that all of them tell, one worker's words are enough.
void ProcessEnvironments::hear_all(void (ProcessEnvironments::*what)(Worker&)) {
  for (Worker& each : workers_) {
    try {
      (this->*what)(each);
    } catch (...) {
      for (Worker& other : workers_)
        if (&other != &each) other.process->mute();
      throw;
    }
  }
}

ProcessEnvironments::~ProcessEnvironments() {
  for (Worker& each : workers_) {
    if (each.process) each.process->hang_up();  // all end at once
  }
}

int ProcessEnvironments::workers() const {
  return static_cast<int>(workers_.size());
}

// The start of a worker: it is told its task, answers with its spec, is told the layout of the
// memory, and begins the first episodes.

void ProcessEnvironments::start(Worker& worker) {
  worker.process = std::make_unique<EnvironmentWorker>(settings_);
  worker.spoke_unasked = false;
  const int count = worker.end - worker.begin;
  worker.process->say(task_line(settings_, set_, first_ + worker.begin, count));
  worker.deadline = Clock::now() + settings_.start_timeout;
}

void ProcessEnvironments::greet(Worker& worker) {
  WorkerAnswer answer = read_answer(settings_, worker.process->hear(worker.deadline));
  if (current_.empty()) {
    answer_ = std::move(answer);
    current_.resize(slots_.size() * static_cast<std::size_t>(spec().observation_bytes()));
  } else if (answer != answer_) {
    throw UsageError(
        fmt::format("environment {}: number {} has another spec, package or source than number {}",
                    settings_.name, first_ + worker.begin, first_),
        "the environments of a run have to be alike");
  }
  WorkerHeader header;
  header.count = static_cast<std::uint32_t>(worker.end - worker.begin);
  worker.layout = layout_of(spec(), worker.end - worker.begin);
  header.size = static_cast<std::uint64_t>(worker.layout.size);
  std::memcpy(worker.process->share(header.size), &header, sizeof header);
  for (int i = worker.begin; i < worker.end; ++i) {
    slots_[static_cast<std::size_t>(i)].is_new = true;
    give_seed(worker, i);
  }
  worker.process->say(layout_line(worker.layout));
  worker.rung = WorkerRing{WorkerRing::reset, 0, header.count};
}

/// Different ones for all episodes of a run, but for chance.
std::uint32_t ProcessEnvironments::seed_of(int number, std::int64_t episode) const {
  const std::uint64_t stream =
      2 * static_cast<std::uint64_t>(first_ + number) + (set_ == EpisodeSet::validation ? 1 : 0);
  // Simulators take seeds as signed numbers of 32 bits.
  return static_cast<std::uint32_t>(
      random_bits(kPurpose, seed_, stream, static_cast<std::uint64_t>(episode)) >> 33U);
}

void ProcessEnvironments::give_seed(const Worker& worker, int number) const {
  worker.array<std::uint32_t>(worker.layout.seeds)[number - worker.begin] =
      seed_of(number, slots_[static_cast<std::size_t>(number)].next);
}

// A step.

void ProcessEnvironments::begin(int begin, int end, const StepArrays& arrays) {
  assert(0 <= begin && begin <= end && end <= count());
  arrays_ = arrays;
  const auto values = static_cast<std::size_t>(spec().actions.values());
  for (Worker& each : workers_) {
    const int first = std::max(begin, each.begin);
    const int last = std::min(end, each.end);
    if (first >= last) continue;
    const auto its_first = static_cast<std::uint32_t>(first - each.begin);
    const auto its_end = static_cast<std::uint32_t>(last - each.begin);
    std::memcpy(each.array<float>(each.layout.actions) + its_first * values,
                &arrays.actions[static_cast<std::size_t>(first) * values],
                (its_end - its_first) * values * sizeof(float));
    const bool any_new = std::any_of(slots_.begin() + first, slots_.begin() + last,
                                     [](const Slot& slot) { return slot.is_new; });
    ring(each, {any_new ? WorkerRing::reset : WorkerRing::step, its_first, its_end});
  }
}

void ProcessEnvironments::ring(Worker& worker, const WorkerRing& rung) const {
  worker.rung = rung;
  worker.spoke_unasked = worker.process->has_spoken();
  worker.deadline = Clock::now() + (rung.work == WorkerRing::reset ? settings_.start_timeout
                                                                   : settings_.step_timeout);
  worker.process->say({reinterpret_cast<const char*>(&rung), sizeof rung});
}

void ProcessEnvironments::wait() {
  for (Worker& each : workers_) {
    while (each.rung) {
      try {
        hear(each);
      } catch (const WorkerFailed& failure) {
        restart(each, failure);
      }
    }
  }
  arrays_ = {};
}

/// Waits until the worker has rung back, and takes what it wrote.
void ProcessEnvironments::hear(Worker& worker) {
  const std::string line = worker.process->hear(worker.deadline);
  if (line.empty() && std::exchange(worker.spoke_unasked, false)) {
    throw WorkerFailed("answered more often than it was rung", "", -1);
  }
  if (!line.empty()) {
    const WorkerFailed error = read_error(line);
    throw WorkerFailed(fmt::format("failed: {}", error.what()), error.hint, error.environment);
  }
  take(worker);
  worker.rung.reset();
}

/// Everything is copied before it is checked: the worker might write again.
void ProcessEnvironments::take(Worker& worker) {
  const int begin = worker.begin + static_cast<int>(worker.rung->begin);
  const int end = worker.begin + static_cast<int>(worker.rung->end);
  const auto bytes = static_cast<std::size_t>(spec().observation_bytes());
  const auto row = [&](auto& rows, int number) {
    return rows.data() + static_cast<std::size_t>(number) * bytes;
  };
  const bool is_step = !arrays_.observations.empty();
  const bool is_reset = worker.rung->work == WorkerRing::reset;
  if (is_step && is_reset) {  // to the learner, their episodes are cut off here
    std::fill(arrays_.rewards.begin() + begin, arrays_.rewards.begin() + end, 0.0F);
    std::fill(arrays_.endings.begin() + begin, arrays_.endings.begin() + end, Ending::truncated);
    std::memcpy(row(arrays_.last_observations, begin), row(current_, begin),
                static_cast<std::size_t>(end - begin) * bytes);
  } else if (is_step) {
    take_results(worker, begin, end);
  }
  std::uint8_t* rows = is_step ? arrays_.observations.data() : current_.data();
  copy_observations(worker, begin, end, worker.layout.observations, rows);
  if (is_step) {  // a copy that the worker cannot spoil
    std::memcpy(row(current_, begin), row(arrays_.observations, begin),
                static_cast<std::size_t>(end - begin) * bytes);
  }
  for (int i = begin; i < end; ++i) {
    Slot& slot = slots_[static_cast<std::size_t>(i)];
    if (!is_reset) {
      ++slot.steps;
      slot.reward += arrays_.rewards[static_cast<std::size_t>(i)];
      if (arrays_.endings[static_cast<std::size_t>(i)] == Ending::none) continue;
      if (slot.still_counted > 0) count_episode(worker, i);
    }
    if (is_reset || seeds_every_episode()) slot.seeded = slot.next;
    slot.is_new = false;
    slot.steps = 0;
    slot.reward = 0;
    ++slot.next;
    give_seed(worker, i);
  }
}

void ProcessEnvironments::take_results(const Worker& worker, int begin, int end) {
  const auto first = static_cast<std::size_t>(begin);
  const auto many = static_cast<std::size_t>(end - begin);
  std::memcpy(&arrays_.rewards[first],
              worker.array<float>(worker.layout.rewards) + worker.rung->begin,
              many * sizeof(float));
  std::memcpy(&arrays_.endings[first],
              worker.array<std::uint8_t>(worker.layout.endings) + worker.rung->begin, many);
  for (int i = begin; i < end; ++i) {
    const float reward = arrays_.rewards[static_cast<std::size_t>(i)];
    const auto ending = static_cast<int>(arrays_.endings[static_cast<std::size_t>(i)]);
    if (!std::isfinite(reward)) {
      throw WorkerFailed(fmt::format("gave the reward {}, which is not finite in float32", reward),
                         "", i - worker.begin);
    }
    if (ending != 0) check_episode_end(worker, i);
  }
}

void ProcessEnvironments::check_episode_end(const Worker& worker, int number) const {
  const Ending ending = arrays_.endings[static_cast<std::size_t>(number)];
  const int its = number - worker.begin;
  if (ending != Ending::terminated && ending != Ending::truncated) {
    throw WorkerFailed(
        fmt::format("ended an episode by {}, not 0, 1 or 2", static_cast<int>(ending)), "", its);
  }
  const std::size_t scores = spec().scores.size() - 1;
  const float* score =
      worker.array<float>(worker.layout.scores) + static_cast<std::size_t>(its) * scores;
  for (std::size_t i = 0; i < scores; ++i) {
    if (std::isfinite(score[i])) continue;
    throw WorkerFailed(fmt::format("gave the score {} as {}", spec().scores[i + 1], score[i]), "",
                       its);
  }
  if (ending != Ending::truncated) return;
  copy_observations(worker, number, number + 1, worker.layout.last_observations,
                    arrays_.last_observations.data());
}

/// And checks them.
void ProcessEnvironments::copy_observations(const Worker& worker, int begin, int end,
                                            const std::vector<std::int64_t>& parts,
                                            std::uint8_t* rows) const {
  for (int i = begin; i < end; ++i) {
    std::uint8_t* at = rows + i * spec().observation_bytes();
    for (std::size_t j = 0; j < parts.size(); ++j) {
      const Observed& part = spec().observations[j];
      const std::int64_t size = part.bytes();
      std::memcpy(at, worker.array<std::uint8_t>(parts[j]) + (i - worker.begin) * size,
                  static_cast<std::size_t>(size));
      check_values(part, at, i - worker.begin);
      at += size;
    }
  }
}

// Failures.

std::string ProcessEnvironments::tell(const Worker& worker, const WorkerFailed& failure) const {
  WorkerHeader header;
  std::memcpy(&header, worker.process->memory(), sizeof header);
  const bool is_told = header.at >= worker.rung->begin && header.at < worker.rung->end;
  const int number = failure.environment >= 0 ? failure.environment
                     : is_told                ? static_cast<int>(header.at)
                                              : -1;
  const std::string what =
      fmt::format("worker {}{}{}", failure.what(), failure.hint.empty() ? "" : "; ", failure.hint);
  if (number < 0 || number >= worker.end - worker.begin) {
    return fmt::format("environments {} to {} ({}): their {}", first_ + worker.begin,
                       first_ + worker.end - 1, settings_.name, what);
  }
  const int mine = worker.begin + number;
  const Slot& slot = slots_[static_cast<std::size_t>(mine)];
  const bool is_reset = worker.rung->work == WorkerRing::reset;
  const bool begins = is_reset || (is_told && header.begins != 0);
  const std::int64_t episode = begins ? slot.next : std::max<std::int64_t>(slot.next, 1) - 1;
  const std::int64_t seeded = is_reset || seeds_every_episode() ? episode : slot.seeded;
  return fmt::format("environment {} ({}, episode {}, seed {}{}): its {}", first_ + mine,
                     settings_.name, episode, seed_of(mine, seeded),
                     seeded == episode ? "" : fmt::format(" of episode {}", seeded), what);
}

void ProcessEnvironments::restart(Worker& worker, const WorkerFailed& failure) {
  const std::string why = tell(worker, failure);
  worker.process->hang_up();
  if (settings_.on_failure == OnFailure::stop) throw EnvironmentFailed(why);
  if (restarts_ == kMostRestarts) {
    throw EnvironmentFailed(fmt::format("{} (after {} restarts)", why, restarts_));
  }
  ++restarts_;
  fmt::print(stderr, "{}dtool-trainer: {}: it is started anew ({} of {})\n", over_the_bar(), why,
             restarts_, kMostRestarts);
  const WorkerRing rung = *worker.rung;
  try {
    worker.process.reset();
    start(worker);
    greet(worker);
  } catch (const std::exception& fault) {
    throw EnvironmentFailed(fmt::format("{}; started anew: {}", why, fault.what()));
  }
  // All of its environments have begun; those that were not rung do so once more when they are.
  worker.rung->begin = rung.begin;
  worker.rung->end = rung.end;
}

// What is known of all of them.

bool ProcessEnvironments::seeds_every_episode() const {
  return settings_.seeds_every_episode || (set_ == EpisodeSet::validation && !settings_.is_vector);
}

/// One vector environment cannot step a part of its environments.
bool ProcessEnvironments::steps_meanwhile() const {
  return !settings_.is_vector || std::ranges::any_of(workers_, [&](const Worker& each) {
    return each.begin == count() / 2;
  });
}

int ProcessEnvironments::count() const {
  return static_cast<int>(slots_.size());
}

void ProcessEnvironments::observe(std::span<std::uint8_t> observations) const {
  assert(observations.size() == current_.size());
  std::memcpy(observations.data(), current_.data(), current_.size());
}

void ProcessEnvironments::advance() {
  arrays_ = {};
  for (Worker& each : workers_) {
    ring(each, {WorkerRing::reset, 0, static_cast<std::uint32_t>(each.end - each.begin)});
  }
  wait();
}

void ProcessEnvironments::count_episode(const Worker& worker, int number) {
  Slot& slot = slots_[static_cast<std::size_t>(number)];
  if (slot.still_counted != kNoLimit) --slot.still_counted;
  const std::size_t scores = spec().scores.size() - 1;
  const float* score = worker.array<float>(worker.layout.scores) +
                       static_cast<std::size_t>(number - worker.begin) * scores;
  slot.sums.episodes += 1;
  slot.sums.steps += slot.steps;
  slot.sums.reward += slot.reward;
  slot.sums.scores.resize(scores + 1);
  slot.sums.scores[0] += slot.reward;
  for (std::size_t i = 0; i < scores; ++i) slot.sums.scores[i + 1] += score[i];
}

EpisodeSums ProcessEnvironments::take_sums() {
  EpisodeSums all;
  all.scores.resize(spec().scores.size());
  for (Slot& each : slots_) all += std::exchange(each.sums, {});
  return all;
}

void ProcessEnvironments::count_only(std::int64_t each) {
  for (Slot& slot : slots_) slot.still_counted = each;
}

bool ProcessEnvironments::counted_all() const {
  return std::ranges::all_of(slots_, [](const Slot& each) { return each.still_counted == 0; });
}

std::vector<std::uint8_t> ProcessEnvironments::state() const {
  std::vector<std::uint8_t> state(slots_.size() * sizeof(std::int64_t));
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    std::memcpy(&state[i * sizeof(std::int64_t)], &slots_[i].next, sizeof(std::int64_t));
  }
  return state;
}

GoesOn ProcessEnvironments::restore(const std::vector<std::uint8_t>& state) {
  const std::size_t saved = state.size() / sizeof(std::int64_t);
  std::vector<std::int64_t> next(saved);
  std::memcpy(next.data(), state.data(), saved * sizeof(std::int64_t));
  if (state.size() != saved * sizeof(std::int64_t) || saved > slots_.size() ||
      std::ranges::any_of(next, [](std::int64_t each) { return each < 0; })) {
    throw std::runtime_error("the environments' state is not that of this number of environments");
  }
  arrays_ = {};
  for (Worker& each : workers_) {
    const int end = std::min(each.end, static_cast<int>(saved));
    for (int i = each.begin; i < end; ++i) {
      slots_[static_cast<std::size_t>(i)].next = next[static_cast<std::size_t>(i)];
      give_seed(each, i);
    }
    if (each.begin >= end) continue;
    const int rung = settings_.is_vector ? each.end : end;
    ring(each, {WorkerRing::reset, 0, static_cast<std::uint32_t>(rung - each.begin)});
  }
  wait();
  return GoesOn::with_new_episodes;
}

}  // namespace dtool::trainer
