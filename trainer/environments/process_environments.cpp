// SPDX-License-Identifier: MIT
// Read it from `begin` on: the workers are rung, each steps its environments and rings back, and
// what it wrote is copied and checked.
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

#include "trainer/environments/environment_worker.h"
#include "trainer/reinforcement/mini_batches.h"
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
  std::int64_t next = 0;   ///< the number of its next episode
  std::int64_t steps = 0;  ///< of this episode
  double reward = 0;       ///< of this episode
  bool is_lost = false;    ///< its worker was started anew, and it has to begin an episode
  EpisodeSums sums;
  std::int64_t still_counted = kNoLimit;
};

struct ProcessEnvironments::Worker {
  int begin = 0;  ///< its environments among the rank's
  int end = 0;
  std::unique_ptr<EnvironmentWorker> process;
  WorkerLayout layout;
  std::optional<WorkerRing> rung;  ///< what it has not answered yet
  Clock::time_point deadline;

  int count() const { return end - begin; }
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
      slots_(static_cast<std::size_t>(count)) {
  workers = std::clamp(workers, 1, std::max(count, 1));
  for (int i = 0; i < workers; ++i) {
    Worker worker;
    worker.begin = static_cast<int>(std::int64_t{count} * i / workers);
    worker.end = static_cast<int>(std::int64_t{count} * (i + 1) / workers);
    workers_.push_back(std::move(worker));
  }
  try {
    // All start at once, which may take each of them seconds.
    for (Worker& each : workers_) start(each);
    for (Worker& each : workers_) greet(each);
    for (Worker& each : workers_) {
      hear(each);
      take_first_observations(each);
      each.rung.reset();
    }
  } catch (const WorkerFailed& failure) {
    throw UsageError(fmt::format("environment {}: its worker {}", settings_.name, failure.what()),
                     failure.hint.empty() && settings_.command.empty()
                         ? "try it alone, without the trainer: python3 dtool_env.py"
                         : failure.hint);
  }
}

ProcessEnvironments::~ProcessEnvironments() {
  for (Worker& each : workers_) {
    if (each.process) each.process->hang_up();
  }
}

std::string ProcessEnvironments::describe() const {
  const int least = count() / static_cast<int>(workers_.size());
  const int most =
      (count() + static_cast<int>(workers_.size()) - 1) / static_cast<int>(workers_.size());
  return fmt::format(
      "{}{}{}, {}{} in {}{} process{}", settings_.name, answer_.package.empty() ? "" : " of ",
      answer_.package, least, least == most ? "" : fmt::format(" or {}", most),
      workers_.size() == 1 ? "" : "each of ", workers_.size(), workers_.size() == 1 ? "" : "es");
}

// The start of a worker: it is told its task, answers with its spec, and is told the layout of the
// memory.

void ProcessEnvironments::start(Worker& worker) {
  worker.process = std::make_unique<EnvironmentWorker>(settings_);
  worker.process->say(task_line(settings_, set_, first_ + worker.begin, worker.count()));
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
  worker.layout = layout_of(spec(), worker.count());
  WorkerHeader header;
  header.count = static_cast<std::uint32_t>(worker.count());
  header.size = static_cast<std::uint64_t>(worker.layout.size);
  std::byte* memory = worker.process->share(static_cast<std::size_t>(worker.layout.size));
  std::memcpy(memory, &header, sizeof header);
  for (int i = worker.begin; i < worker.end; ++i) {
    slots_[static_cast<std::size_t>(i)].is_lost = true;
    give_seed(worker, i);
  }
  worker.process->say(layout_line(worker.layout));
  // It begins an episode in each, and answers without being rung.
  worker.rung = WorkerRing{WorkerRing::reset, 0, header.count};
}

void ProcessEnvironments::take_first_observations(Worker& worker) {
  const int begin = worker.begin + static_cast<int>(worker.rung->begin);
  const int end = worker.begin + static_cast<int>(worker.rung->end);
  copy_observations(worker, begin, end, worker.layout.observations, current_.data());
  check_observations(worker, begin, end, current_.data());
  for (int i = begin; i < end; ++i) note_new_episode(worker, i);
}

/// Without repetition among the environments of a run, but for chance.
std::uint32_t ProcessEnvironments::episode_seed(int number, std::int64_t episode) const {
  const auto of_set =
      2 * static_cast<std::uint64_t>(first_ + number) + (set_ == EpisodeSet::validation ? 1 : 0);
  // Simulators take seeds as signed numbers of 32 bits.
  return static_cast<std::uint32_t>(
      random_bits(kPurpose, seed_, of_set, static_cast<std::uint64_t>(episode)) >> 33U);
}

void ProcessEnvironments::give_seed(const Worker& worker, int number) const {
  worker.array<std::uint32_t>(worker.layout.seeds)[number - worker.begin] =
      episode_seed(number, slots_[static_cast<std::size_t>(number)].next);
}

void ProcessEnvironments::note_new_episode(const Worker& worker, int number) {
  Slot& slot = slots_[static_cast<std::size_t>(number)];
  slot.is_lost = false;
  slot.steps = 0;
  slot.reward = 0;
  ++slot.next;
  give_seed(worker, number);
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
    std::memcpy(each.array<float>(each.layout.actions) +
                    static_cast<std::size_t>(first - each.begin) * values,
                &arrays.actions[static_cast<std::size_t>(first) * values],
                static_cast<std::size_t>(last - first) * values * sizeof(float));
    ring(each, first, last);
  }
}

/// Environments of a worker that was started anew begin an episode instead of a step.
void ProcessEnvironments::ring(Worker& worker, int begin, int end) {
  WorkerRing rung;
  rung.begin = static_cast<std::uint32_t>(begin - worker.begin);
  rung.end = static_cast<std::uint32_t>(end - worker.begin);
  const auto is_lost = [](const Slot& slot) { return slot.is_lost; };
  if (std::any_of(slots_.begin() + begin, slots_.begin() + end, is_lost)) {
    rung.work = WorkerRing::reset;
  }
  worker.rung = rung;
  worker.deadline = Clock::now() + settings_.step_timeout;
  worker.process->say({reinterpret_cast<const char*>(&rung), sizeof rung});
}

void ProcessEnvironments::wait() {
  finish([this](Worker& worker) { take_results(worker); });
}

/// Waits for all workers that were rung, and takes what each wrote.
template <class Take>
void ProcessEnvironments::finish(const Take& take) {
  for (Worker& each : workers_) {
    while (each.rung) {
      try {
        hear(each);
        take(each);
        each.rung.reset();
      } catch (const WorkerFailed& failure) {
        restart(each, tell(each, failure));
      }
    }
  }
}

/// Waits until the worker has rung back.
void ProcessEnvironments::hear(Worker& worker) {
  const std::string line = worker.process->hear(worker.deadline);
  if (line.empty()) return;
  const WorkerError error = read_error(line);
  throw WorkerFailed("failed: " + error.message, error.hint, error.environment);
}

/// Everything is copied before it is checked: the worker might write again.
void ProcessEnvironments::take_results(Worker& worker) {
  const int begin = worker.begin + static_cast<int>(worker.rung->begin);
  const int end = worker.begin + static_cast<int>(worker.rung->end);
  const auto bytes = static_cast<std::size_t>(spec().observation_bytes());
  const auto row = [&](std::span<std::uint8_t> rows, int number) {
    return &rows[static_cast<std::size_t>(number) * bytes];
  };
  copy_observations(worker, begin, end, worker.layout.observations, arrays_.observations.data());
  check_observations(worker, begin, end, arrays_.observations.data());
  if (worker.rung->work == WorkerRing::step) {
    const auto first = static_cast<std::size_t>(begin);
    const auto many = static_cast<std::size_t>(end - begin);
    std::memcpy(&arrays_.rewards[first],
                worker.array<float>(worker.layout.rewards) + worker.rung->begin,
                many * sizeof(float));
    std::memcpy(&arrays_.endings[first],
                worker.array<std::uint8_t>(worker.layout.endings) + worker.rung->begin, many);
    check_results(worker, begin, end);
  } else {
    for (int i = begin; i < end; ++i) {
      arrays_.rewards[static_cast<std::size_t>(i)] = 0;
      arrays_.endings[static_cast<std::size_t>(i)] = Ending::truncated;
      std::memcpy(row(arrays_.last_observations, i), row(current_, i), bytes);
    }
  }
  for (int i = begin; i < end; ++i) {
    const Ending ending = arrays_.endings[static_cast<std::size_t>(i)];
    Slot& slot = slots_[static_cast<std::size_t>(i)];
    ++slot.steps;
    slot.reward += arrays_.rewards[static_cast<std::size_t>(i)];
    if (ending == Ending::none) continue;
    if (!slot.is_lost) count_episode(worker, i);
    note_new_episode(worker, i);
  }
  std::memcpy(row(current_, begin), row(arrays_.observations, begin),
              static_cast<std::size_t>(end - begin) * bytes);
}

void ProcessEnvironments::copy_observations(const Worker& worker, int begin, int end,
                                            const std::vector<std::int64_t>& parts,
                                            std::uint8_t* rows) const {
  const auto bytes = static_cast<std::size_t>(spec().observation_bytes());
  std::size_t offset = 0;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const auto size = static_cast<std::size_t>(spec().observations[part].bytes());
    const auto* from = worker.array<std::uint8_t>(parts[part]);
    // Of a single part, the rows follow each other on both sides.
    const auto at_once = static_cast<std::size_t>(size == bytes ? end - begin : 1);
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end);
         i += at_once) {
      std::memcpy(rows + i * bytes + offset,
                  from + (i - static_cast<std::size_t>(worker.begin)) * size, at_once * size);
    }
    offset += size;
  }
}

void ProcessEnvironments::check_observations(const Worker& worker, int begin, int end,
                                             const std::uint8_t* rows) const {
  for (int i = begin; i < end; ++i) {
    const std::uint8_t* at = rows + static_cast<std::int64_t>(i) * spec().observation_bytes();
    for (const Observed& part : spec().observations) {
      const std::uint8_t* const next = at + part.bytes();
      if (part.kind == ObservedKind::codes && part.codes < 256 &&
          std::any_of(at, next, [&](std::uint8_t code) { return code >= part.codes; })) {
        throw WorkerFailed(fmt::format("observed code {} in {}, which has codes below {}",
                                       *std::max_element(at, next), part.name, part.codes),
                           "", i - worker.begin);
      }
      for (; part.kind == ObservedKind::numbers && at < next; at += sizeof(float)) {
        float number = 0;
        std::memcpy(&number, at, sizeof number);
        if (std::isfinite(number)) continue;
        throw WorkerFailed(fmt::format("observed {} in {}", number, part.name), "",
                           i - worker.begin);
      }
      at = next;
    }
  }
}

/// And fetches the last observations of the episodes that were cut off.
void ProcessEnvironments::check_results(const Worker& worker, int begin, int end) const {
  for (int i = begin; i < end; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const int its = i - worker.begin;
    if (!std::isfinite(arrays_.rewards[at])) {
      throw WorkerFailed(
          fmt::format("gave the reward {}, which is not finite in float32", arrays_.rewards[at]),
          "", its);
    }
    const auto ending = static_cast<unsigned>(arrays_.endings[at]);
    if (ending > static_cast<unsigned>(Ending::truncated)) {
      throw WorkerFailed(fmt::format("ended an episode by {}, not 0, 1 or 2", ending), "", its);
    }
    if (arrays_.endings[at] == Ending::none) continue;
    const std::size_t scores = spec().scores.size() - 1;
    const float* score =
        worker.array<float>(worker.layout.scores) + static_cast<std::size_t>(its) * scores;
    for (std::size_t j = 0; j < scores; ++j) {
      if (std::isfinite(score[j])) continue;
      throw WorkerFailed(fmt::format("gave the score {} {}", spec().scores[j + 1], score[j]), "",
                         its);
    }
    if (arrays_.endings[at] != Ending::truncated) continue;
    std::uint8_t* rows = arrays_.last_observations.data();
    copy_observations(worker, i, i + 1, worker.layout.last_observations, rows);
    check_observations(worker, i, i + 1, rows);
  }
}

// Failures.

std::string ProcessEnvironments::tell(const Worker& worker, const WorkerFailed& failure) const {
  int number = failure.environment;
  if (number < 0) {  // what it says that it was busy with
    WorkerHeader header;
    std::memcpy(&header, worker.process->memory(), sizeof header);
    const bool is_rung =
        worker.rung && header.at >= worker.rung->begin && header.at < worker.rung->end;
    if (is_rung) number = static_cast<int>(header.at);
  }
  const std::string hint = failure.hint.empty() ? "" : "; " + failure.hint;
  if (number < 0 || number >= worker.count()) {
    return fmt::format("environments {} to {} ({}): their worker {}{}", first_ + worker.begin,
                       first_ + worker.end - 1, settings_.name, failure.what(), hint);
  }
  const int mine = worker.begin + number;
  const std::int64_t episode =
      std::max<std::int64_t>(0, slots_[static_cast<std::size_t>(mine)].next - 1);
  return fmt::format("environment {} ({}, episode {}, seed {}): its worker {}{}", first_ + mine,
                     settings_.name, episode, episode_seed(mine, episode), failure.what(), hint);
}

void ProcessEnvironments::restart(Worker& worker, const std::string& why) {
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
    // Environments that were not rung are reset once more in their next step.
    worker.rung->begin = rung.begin;
    worker.rung->end = rung.end;
  } catch (const UsageError& mistake) {
    throw EnvironmentFailed(fmt::format("{}; started anew: {}", why, mistake.what()));
  } catch (const WorkerFailed& failure) {
    throw EnvironmentFailed(fmt::format("{}; started anew, it {}", why, failure.what()));
  }
}

// What is known of all of them.

int ProcessEnvironments::count() const {
  return static_cast<int>(slots_.size());
}

void ProcessEnvironments::observe(std::span<std::uint8_t> observations) const {
  assert(observations.size() == current_.size());
  std::memcpy(observations.data(), current_.data(), current_.size());
}

void ProcessEnvironments::count_episode(const Worker& worker, int number) {
  Slot& slot = slots_[static_cast<std::size_t>(number)];
  if (slot.still_counted == 0) return;
  if (slot.still_counted != kNoLimit) --slot.still_counted;
  ++slot.sums.episodes;
  slot.sums.steps += static_cast<double>(slot.steps);
  slot.sums.reward += slot.reward;
  slot.sums.scores.resize(spec().scores.size());
  slot.sums.scores[0] += slot.reward;
  const std::size_t scores = spec().scores.size() - 1;
  const float* score = worker.array<float>(worker.layout.scores) +
                       static_cast<std::size_t>(number - worker.begin) * scores;
  for (std::size_t j = 0; j < scores; ++j) slot.sums.scores[j + 1] += score[j];
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
  return std::all_of(slots_.begin(), slots_.end(),
                     [](const Slot& each) { return each.still_counted == 0; });
}

std::vector<std::uint8_t> ProcessEnvironments::state() const {
  std::vector<std::uint8_t> state(slots_.size() * sizeof(std::int64_t));
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    std::memcpy(&state[i * sizeof(std::int64_t)], &slots_[i].next, sizeof(std::int64_t));
  }
  return state;
}

GoesOn ProcessEnvironments::restore(const std::vector<std::uint8_t>& state) {
  const std::size_t count = state.size() / sizeof(std::int64_t);
  if (state.size() % sizeof(std::int64_t) != 0 || count > slots_.size()) {
    throw std::runtime_error("the environments' state is of another number of environments");
  }
  std::vector<std::int64_t> next(count);
  std::memcpy(next.data(), state.data(), state.size());
  if (std::any_of(next.begin(), next.end(), [](std::int64_t each) { return each < 0; })) {
    throw std::runtime_error("the environments' state has numbers that no episode has");
  }
  for (Worker& each : workers_) {
    const int end = std::min(each.end, static_cast<int>(count));
    for (int i = each.begin; i < end; ++i) {
      Slot& slot = slots_[static_cast<std::size_t>(i)];
      slot.next = next[static_cast<std::size_t>(i)];
      slot.is_lost = true;
      give_seed(each, i);
    }
    if (each.begin < end) ring(each, each.begin, end);
  }
  finish([this](Worker& worker) { take_first_observations(worker); });
  return GoesOn::with_new_episodes;
}

}  // namespace dtool::trainer
