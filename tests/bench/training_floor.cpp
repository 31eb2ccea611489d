// SPDX-License-Identifier: MIT
// The floor under a training step of the seed's MNIST network (784-50-10, batch 64), one thread a
// rank: its five matrix products, alone in a loop. Called by tests/bench/trainer --profile:
// `bench_training_floor products` prints microseconds a step, `bench_training_floor` only ends, as
// a program does that has LibTorch in it.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <chrono>
#include <functional>

namespace {

constexpr int kSteps = 5000;
constexpr int kBatch = 64, kInputs = 784, kHidden = 50, kOutputs = 10;

double microseconds_a_step(const std::function<void()>& step) {
  for (int i = 0; i < kSteps / 10; ++i) step();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kSteps; ++i) step();
  const std::chrono::duration<double, std::micro> elapsed =
      std::chrono::steady_clock::now() - begin;
  return elapsed.count() / kSteps;
}

/// The batches differ, as those of a training do: 16 of them are more than a second-level cache
/// holds.
double matrix_products() {
  const at::Tensor inputs = at::rand({16, kBatch, kInputs});
  const at::Tensor first = at::rand({kHidden, kInputs}), second = at::rand({kOutputs, kHidden});
  const at::Tensor first_gradient = at::empty_like(first), second_gradient = at::empty_like(second);
  const at::Tensor hidden = at::empty({kBatch, kHidden}), outputs = at::empty({kBatch, kOutputs});
  const at::Tensor hidden_gradient = at::empty_like(hidden);
  at::Tensor results[] = {hidden, outputs, second_gradient, hidden_gradient, first_gradient};
  int number = 0;
  return microseconds_a_step([&] {
    const at::Tensor batch = inputs[number++ % 16];
    at::mm_out(results[0], batch, first.t());
    at::mm_out(results[1], hidden, second.t());
    at::mm_out(results[2], outputs.t(), hidden);
    at::mm_out(results[3], outputs, second);
    at::mm_out(results[4], hidden_gradient.t(), batch);
  });
}

}  // namespace

int main(int argc, char**) {
  const c10::NoGradGuard no_gradients;
  at::set_num_threads(1);
  if (argc > 1) fmt::print("{:.1f}\n", matrix_products());
}
