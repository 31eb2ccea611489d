// SPDX-License-Identifier: MIT
#include "trainer/reinforcement/environments.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <thread>

namespace dtool::trainer {

std::int64_t Observed::values() const {
  std::int64_t product = 1;
  for (const std::int64_t side : shape) product *= side;
  return product;
}

std::int64_t Observed::bytes() const {
  return values() * (kind == ObservedKind::numbers ? std::int64_t{sizeof(float)} : 1);
}

std::int64_t ActionSpec::values() const {
  return static_cast<std::int64_t>(is_box() ? low.size() : choices.size());
}

std::int64_t ActionSpec::parameters() const {
  if (is_box()) return 2 * values();
  return std::accumulate(choices.begin(), choices.end(), std::int64_t{0});
}

std::int64_t EnvironmentSpec::observation_bytes() const {
  std::int64_t sum = 0;
  for (const Observed& each : observations) sum += each.bytes();
  return sum;
}

EpisodeSums& EpisodeSums::operator+=(const EpisodeSums& other) {
  episodes += other.episodes;
  steps += other.steps;
  reward += other.reward;
  scores.resize(std::max(scores.size(), other.scores.size()));
  for (std::size_t i = 0; i < other.scores.size(); ++i) scores[i] += other.scores[i];
  return *this;
}

struct ThreadedEnvironments::Shared {
  std::mutex mutex;
  std::condition_variable has_begun;
  std::condition_variable is_done;
  std::int64_t steps = 0;  ///< the steps that have begun
  int busy = 0;            ///< threads that have not finished the last of them
  bool is_closing = false;
  int first = 0;
  int last = 0;
  StepArrays arrays;
  std::vector<std::thread> threads;

  void work(ThreadedEnvironments& environments, int thread);
  void close();
};

void ThreadedEnvironments::Shared::close() {
  {
    const std::lock_guard lock(mutex);
    is_closing = true;
  }
  has_begun.notify_all();
  for (std::thread& each : threads) each.join();
  threads.clear();
}

void ThreadedEnvironments::Shared::work(ThreadedEnvironments& environments, int thread) {
  std::int64_t done = 0;
  std::unique_lock lock(mutex);
  for (;;) {
    has_begun.wait(lock, [&] { return is_closing || steps > done; });
    if (is_closing) return;
    const auto count = static_cast<int>(threads.size());
    const auto part = [&](int number) { return first + (last - first) * number / count; };
    const int begin = part(thread);
    const int end = part(thread + 1);
    const StepArrays here = arrays;
    lock.unlock();
    environments.step(begin, end, here);
    lock.lock();
    ++done;
    if (--busy == 0) is_done.notify_one();
  }
}

ThreadedEnvironments::ThreadedEnvironments(int threads) : shared_(std::make_unique<Shared>()) {
  try {
    // No thread looks at the number of threads before all are there.
    const std::lock_guard lock(shared_->mutex);
    for (int i = 0; i < threads; ++i)
      shared_->threads.emplace_back(&Shared::work, shared_.get(), std::ref(*this), i);
  } catch (...) {  // the system has no more threads
    shared_->close();
    throw;
  }
}

ThreadedEnvironments::~ThreadedEnvironments() {
  end_threads();
}

void ThreadedEnvironments::end_threads() {
  wait();
  shared_->close();
}

bool ThreadedEnvironments::steps_meanwhile() const {
  return !shared_->threads.empty();
}

void ThreadedEnvironments::begin(int begin, int end, const StepArrays& arrays) {
  if (shared_->threads.empty()) {
    step(begin, end, arrays);
    return;
  }
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->first = begin;
    shared_->last = end;
    shared_->arrays = arrays;
    shared_->busy = static_cast<int>(shared_->threads.size());
    ++shared_->steps;
  }
  shared_->has_begun.notify_all();
}

void ThreadedEnvironments::wait() {
  std::unique_lock lock(shared_->mutex);
  shared_->is_done.wait(lock, [&] { return shared_->busy == 0; });
}

}  // namespace dtool::trainer
