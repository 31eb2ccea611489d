// SPDX-License-Identifier: MIT
// How many pictures a policy looks at and learns from in a second, with each encoder, beside the
// same layers over the whole batch at once, as PyTorch's users write them: `bench_picture_encoders
// [SIDE [CHANNELS [BATCH]]]` (64, 4, 512), one thread, by the processor's time.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <limits>
#include <string>

#include "trainer/model/network.h"
#include "trainer/reinforcement/observation_encoder.h"

using namespace dtool::trainer;

namespace {

constexpr double kLongEnough = 2;  ///< seconds of rounds

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Pictures a second in the fastest of several rounds: what else the machine does makes none
/// faster.
double rate_of(std::int64_t pictures, const std::function<void()>& round) {
  round();
  double least = std::numeric_limits<double>::infinity();
  for (double spent = 0, last = 0; spent < kLongEnough; spent += last) {
    const double begin = processor_seconds();
    round();
    last = processor_seconds() - begin;
    least = std::min(least, last);
  }
  return static_cast<double>(pictures) / least;
}

struct Rates {
  double forward;
  double learned;
};

Rates rates_of(std::int64_t pictures, const std::function<at::Tensor()>& forward) {
  const auto look = [&] {
    const c10::NoGradGuard no_gradients;
    forward();
  };
  return {rate_of(pictures, look), rate_of(pictures, [&] { forward().sum().backward(); })};
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  const auto number = [&](int i, std::int64_t standard) {
    return argc > i ? std::strtoll(argv[i], nullptr, 10) : standard;
  };
  const std::int64_t side = number(1, 64), channels = number(2, 4), batch = number(3, 512);
  const Observed picture{"image", {channels, side, side}, ObservedKind::pixels, 0};
  const EnvironmentSpec spec{{picture}, {{4}, {}, {}}, {"reward"}};
  fmt::print(
      "pictures of {} x {} x {}, batches of {}; pictures a second: forward, and with backward\n",
      channels, side, side, batch);
  for (const std::string name :
       {"nature_half", "nature", "impala", "resnet18_half", "resnet18", "small"}) {
    PolicySettings settings;
    settings.encoder = name;
    const ObservationEncoder encoder(spec, settings, "", at::kCPU);
    const at::Tensor pictures = at::randint(256, {batch, picture.bytes()}, at::kByte);
    const Rates ours = rates_of(batch, [&] { return encoder.encode(pictures, nullptr); });
    const std::vector<Layer> layers = layers_of_picture(settings, picture);
    const Network network(layers, picture.shape, Beginning::orthogonal, "", {});
    const Rates plain = rates_of(batch, [&] {
      const at::Tensor pixels = pictures.view({batch, channels, side, side}).to(at::kFloat) / 255;
      return network.apply(pixels, 0, layers.size());
    });
    fmt::print("  {:<14} {:8.0f} {:8.0f}   at once: {:8.0f} {:8.0f}\n", name, ours.forward,
               ours.learned, plain.forward, plain.learned);
    std::fflush(stdout);
  }
  return 0;
}
