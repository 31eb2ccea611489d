// SPDX-License-Identifier: MIT
// How fast the ObjectNav environment steps on one core, alone, and what its parts take. Called by
// tests/bench/objectnav_environment: `bench_objectnav_environment [STEPS] [SAMPLERS]`.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "trainer/data/sampler.h"
#include "trainer/objectnav/camera.h"
#include "trainer/objectnav/episode.h"
#include "trainer/objectnav/house.h"
#include "trainer/objectnav/samplers.h"
#include "trainer/objectnav/view.h"

namespace {

using namespace dtool::trainer;

constexpr int kRepeats = 5;  // the best of these

/// Of this thread's processor time, so that other programs on the machine hardly count.
double seconds_used() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double best_seconds(const std::function<void()>& work) {
  double best = 1e9;
  for (int i = 0; i < kRepeats; ++i) {
    const double begin = seconds_used();
    work();
    best = std::min(best, seconds_used() - begin);
  }
  return best;
}

void print_part(const char* name, int calls, const std::function<void(int)>& work) {
  const double seconds = best_seconds([&] {
    for (int i = 0; i < calls; ++i) work(i);
  });
  fmt::print("{:<44}{:>10.0f} ns\n", name, seconds / calls * 1e9);
}

/// Actions evenly from the first `actions` of them: without the last, `done`, episodes go on to the
/// step limit.
void print_steps(const char* name, int steps, int samplers, int actions) {
  Samplers environments({}, EpisodeSet::training, 1, 0, samplers);
  const auto count = static_cast<std::size_t>(samplers);
  Random random(7);
  std::vector<float> drawn(count * 1009);
  for (auto& each : drawn)
    each = static_cast<float>(random.below(static_cast<std::uint64_t>(actions)));
  std::vector<float> rewards(count);
  std::vector<Ending> endings(count);
  std::vector<std::uint8_t> observations(count * kObservationBytes);
  std::vector<std::uint8_t> last_observations(observations.size());
  const int rounds = steps / samplers;
  const double seconds = best_seconds([&] {
    for (int i = 0; i < rounds; ++i) {
      const auto* const row = &drawn[count * static_cast<std::size_t>(i % 1009)];
      environments.begin(0, samplers,
                         {{row, count}, rewards, endings, observations, last_observations});
      environments.wait();
    }
  });
  const EpisodeSums sums = environments.take_sums();
  fmt::print("{:<44}{:>10.2f} million steps/s, {:.1f} steps an episode, {:.2f} % success\n", name,
             rounds * samplers / seconds / 1e6, sums.steps / sums.episodes,
             100.0 * sums.scores[0] / sums.episodes);
}

void print_parts() {
  const EnvironmentSettings settings;
  constexpr int kCalls = 20'000;
  House house;
  GoalField field;
  std::vector<std::uint8_t> codes(kObservationBytes);
  print_part("a house", kCalls,
             [&](int i) { make_house(settings, static_cast<std::uint64_t>(i), house); });
  print_part("a goal's distance field", kCalls, [&](int i) {
    find_paths(settings, house,
               house.objects()[static_cast<std::size_t>(i) % house.object_count].kind, field);
  });
  Scene scene;
  print_part("the beginning of an episode, without a house", kCalls,
             [&](int i) { begin_episode(settings, scene, i % settings.episodes_per_house); });
  print_part("a view", kCalls, [&](int i) {
    const auto cells = house.free_cells();
    look(house, cells[static_cast<std::size_t>(i) % cells.size()], i & 3, 3, codes.data());
  });
  std::vector<std::uint8_t> picture(kPictureBytes);
  print_part("a picture of the camera", kCalls, [&](int i) {
    const auto cells = house.free_cells();
    take_picture(house, cells[static_cast<std::size_t>(i) % cells.size()], i & 3, kNoClass,
                 picture.data());
  });
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 2'000'000;
  const int samplers = argc > 2 ? std::atoi(argv[2]) : 60;
  print_steps("all actions alike", steps, samplers, kActions);
  print_steps("all actions but done", steps, samplers, kActions - 1);
  print_parts();
}
