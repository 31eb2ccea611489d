// The floor under a training step of the seed's MNIST network (784-50-10, batch 64), one thread a
// rank: its five matrix products and, on two ranks, one all-reduce of the bytes of its gradients,
// each alone in a loop. Prints microseconds a step. Called by tests/bench/trainer --profile:
// `bench_training_floor FOLDER`.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

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

double all_reduces(const std::filesystem::path& folder, int rank) {
  auto store = c10::make_intrusive<c10d::FileStore>((folder / "store").string(), 2);
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->devices = {c10d::ProcessGroupGloo::createDeviceForInterface("lo")};
  c10d::ProcessGroupGloo group(store, rank, 2, options);
  std::vector<at::Tensor> gradients = {
      at::zeros({kHidden * kInputs + kHidden + kOutputs * kHidden + kOutputs})};
  return microseconds_a_step([&] { group.allreduce(gradients)->wait(); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const c10::NoGradGuard no_gradients;
  at::set_num_threads(1);
  const double products = matrix_products();
  const pid_t other = fork();
  const double exchange = all_reduces(argv[1], other == 0 ? 1 : 0);
  if (other == 0) std::_Exit(0);
  waitpid(other, nullptr, 0);
  fmt::print("{:.1f} {:.1f}\n", products, exchange);
  std::fflush(stdout);
  std::_Exit(0);
}
