// SPDX-License-Identifier: MIT
// What a step of experience costs in the policy of ObjectNav, part by part, beside PyTorch's own
// operations for the same: `bench_objectnav_policy [EMBEDDING HIDDEN [SAMPLERS]]`, microseconds on
// one thread. A training pass is forward, backward and Adam over 128 steps of all samplers.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/types.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <limits>
#include <vector>

#include "tests/trainer/random_observations.h"
#include "trainer/reinforcement/actions.h"
#include "trainer/reinforcement/encoded_policy.h"
#include "trainer/reinforcement/ppo_loss.h"
#include "trainer/reinforcement/view_embedding.h"
#include "trainer/training/optimizer.h"

using namespace dtool::trainer;

namespace {

constexpr std::int64_t kSteps = 128;
constexpr int kRounds = 15;

double processor_microseconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return 1e6 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_nsec);
}

/// The fastest of several rounds, in microseconds of the processor's time: what else the machine
/// does makes none faster.
double fastest_of(const std::function<void()>& round) {
  round();
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kRounds; ++i) {
    const double begin = processor_microseconds();
    round();
    least = std::min(least, processor_microseconds() - begin);
  }
  return least;
}

void print_row(const std::string& name, double microseconds) {
  fmt::print("  {:<66} {:8.3f}\n", name, microseconds);
}

/// Random experience, and the pieces of the network that a policy of this size has.
struct Bench {
  Bench(const PolicySettings& size, std::int64_t samplers)
      : network(objectnav_spec(), size, at::kCPU), steps(static_cast<double>(kSteps * samplers)) {
    observations = random_observations({kSteps, samplers});
    memory = 0.5 * at::randn({samplers, size.hidden});
    keep = at::rand({kSteps, samplers}).gt(0.02).to(at::kFloat);
    actions = at::randint(kActions, {kSteps, samplers, 1}, at::kFloat);
    taken = {actions, at::full({kSteps, samplers}, -1.79F), at::zeros({kSteps, samplers}),
             at::randn({kSteps, samplers}), at::randn({kSteps, samplers})};
    const auto parameters = network.parameters();
    table = parameters[0].tensor;
    gru = {parameters[1].tensor, parameters[2].tensor, parameters[3].tensor, parameters[4].tensor};
    for (const at::Tensor& each : {gru.input, gru.recurrent, gru.input_bias, gru.recurrent_bias}) {
      theirs.push_back(each.detach().t().contiguous().requires_grad_(true));
    }
    seen = at::rand({kSteps, samplers, size.embedding}).requires_grad_(true);
    memories = at::rand({kSteps, samplers, size.hidden}).requires_grad_(true);
  }

  /// Of forward and backward, a step.
  double of_pass(const std::function<at::Tensor()>& forward, const at::Tensor& direction) {
    return fastest_of([&] { forward().backward(direction); }) / steps;
  }

  /// Of the recurrent unit's matrix products, forward and backward, alone.
  double of_products();
  void act();
  void learn();
  void peers();

  EncodedPolicy network;
  double steps;
  at::Tensor first_rows = first_rows_of(objectnav_spec());
  at::Tensor observations, memory, keep, actions, table, seen, memories;
  TakenSteps taken;
  RecurrentWeights gru;
  std::vector<at::Tensor> theirs;  ///< the same as torch.nn.GRU has them
};

double Bench::of_products() {
  const c10::NoGradGuard no_gradients;
  const auto samplers = memory.size(0), width = memory.size(1);
  const at::Tensor inputs = seen.flatten(0, 1), before = memories.flatten(0, 1);
  const at::Tensor input = gru.input.detach(), recurrent = gru.recurrent.detach();
  const at::Tensor transposed = recurrent.t().contiguous();
  at::Tensor at_gates = at::zeros({kSteps * samplers, 3 * width});
  at::Tensor of_step = at::zeros({samplers, 3 * width});
  at::Tensor at_memory = at::zeros({samplers, width});
  return fastest_of([&] {
           at::mm_out(at_gates, inputs, input);
           for (std::int64_t t = 0; t < kSteps; ++t) at::mm_out(of_step, memories[t], recurrent);
           for (std::int64_t t = 0; t < kSteps; ++t) {
             at::mm_out(at_memory, at_gates.narrow(0, t * samplers, samplers), transposed);
           }
           inputs.t().mm(at_gates);
           before.t().mm(at_gates);
           at_gates.mm(input.t());
         }) /
         steps;
}

/// Acting is timed over a whole rollout, so that the weights are as far away as they then are.
void Bench::act() {
  const c10::NoGradGuard no_gradients;
  const auto each = [&](const std::function<void(std::int64_t)>& step) {
    return fastest_of([&] {
             for (std::int64_t t = 0; t < kSteps; ++t) step(t);
           }) /
           steps;
  };
  std::vector<float> chosen(static_cast<std::size_t>(memory.size(0)));
  std::vector<float> log_probs(chosen.size());
  const at::Tensor logits = at::randn({memory.size(0), kActions});
  fmt::print("acting, a step of one sampler:\n");
  print_row("all of act()",
            each([&](std::int64_t t) { network.act(observations[t], memory, keep[t]); }));
  print_row("  view embedding",
            each([&](std::int64_t t) { embed_views(observations[t], table, first_rows); }));
  print_row("  recurrent unit",
            each([&](std::int64_t t) { masked_gru_step(gru, seen[t], memory, keep[t]); }));
  print_row("    at::gru_cell", each([&](std::int64_t t) {
              at::gru_cell(seen[t], memory * keep[t].unsqueeze(1), theirs[0], theirs[1], theirs[2],
                           theirs[3]);
            }));
  print_row("drawing an action", each([&](std::int64_t t) {
              sample_actions(logits, objectnav_spec().actions, 1, 0, t, chosen.data(),
                             log_probs.data());
            }));
}

void Bench::learn() {
  const auto parameters = tensors_of(network.parameters());
  OptimizerSettings settings{};
  settings.beta1 = 0.9;
  settings.beta2 = 0.999;
  settings.epsilon = 1e-8;
  settings.clip_norm = 0.5;
  Optimizer optimizer(parameters, settings);
  const auto forget = [&] {
    for (const at::Tensor& each : parameters) each.mutable_grad().reset();
  };
  const auto pass = [&] {
    forget();
    const PolicyOutput output = network.unroll(observations, memory, keep);
    ppo_loss({}, {objectnav_spec().actions, output.logits}, output.values, taken,
             at::scalar_tensor(steps))
        .loss.backward();
  };
  const auto heads = parameters[5], head_bias = parameters[6];
  at::Tensor logits = at::randn({kSteps, memory.size(0), kActions}).requires_grad_(true);
  at::Tensor values = at::randn({kSteps, memory.size(0)}).requires_grad_(true);
  at::Tensor advantages = at::empty_like(taken.returns), returns = at::empty_like(taken.returns);
  const Experience experience{taken.returns, at::rand({kSteps + 1, memory.size(0)}),
                              at::ones({kSteps + 1, memory.size(0)})};
  fmt::print("learning, a step of one sampler in one pass:\n");
  print_row("all: forward, backward, Adam with clipping", fastest_of([&] {
                                                            pass();
                                                            optimizer.step(1e-9);
                                                          }) / steps);
  print_row(
      "  view embedding",
      of_pass([&] { return embed_views(observations, table, first_rows); }, at::rand_like(seen)));
  print_row("  recurrent unit",
            of_pass([&] { return masked_gru(gru, seen, memory, keep); }, at::rand_like(memories)));
  print_row("    its matrix products alone", of_products());
  print_row("  heads", of_pass([&] { return at::linear(memories, heads, head_bias); },
                               at::rand({kSteps, memory.size(0), kActions + 1})));
  print_row("  loss", of_pass(
                          [&] {
                            return ppo_loss({}, {objectnav_spec().actions, logits}, values, taken,
                                            at::scalar_tensor(steps))
                                .loss;
                          },
                          at::ones({})));
  pass();
  print_row("  Adam with clipping", fastest_of([&] { optimizer.step(1e-9); }) / steps);
  print_row("advantages, once for all passes",
            fastest_of([&] {
              estimate_advantages(experience, kSteps, {0.99, 0.95}, advantages, returns);
            }) / steps);
}

void Bench::peers() {
  const auto direction = at::rand_like(memories);
  fmt::print("PyTorch's operations for the same, forward and backward:\n");
  print_row("  view embedding: at::embedding_bag",
            of_pass([&] { return embed_views_by_operations(observations, table, first_rows); },
                    at::rand_like(seen)));
  print_row(
      "  recurrent unit: at::gru_cell, step by step",
      of_pass([&] { return masked_gru(gru, seen, memory, keep, GruWay::operations); }, direction));
  print_row("  recurrent unit: at::gru (torch.nn.GRU), which knows no end of episodes",
            of_pass(
                [&] {
                  return std::get<0>(at::gru(seen, memory.unsqueeze(0), theirs,
                                             /*has_biases=*/true, /*num_layers=*/1, /*dropout=*/0,
                                             /*train=*/true, /*bidirectional=*/false,
                                             /*batch_first=*/false));
                },
                direction));
}

}  // namespace

int main(int argc, char** argv) {
  // The matrix products' library reads it when it is loaded.
  if (std::getenv("OMP_NUM_THREADS") == nullptr) {
    setenv("OMP_NUM_THREADS", "1", 1);
    execv("/proc/self/exe", argv);
  }
  const auto number = [&](int i, std::int64_t standard) {
    return argc > i ? std::atoll(argv[i]) : standard;
  };
  const PolicySettings size{
      .embedding = number(1, 64), .memory = PolicyMemory::gru, .hidden = number(2, 128)};
  const std::int64_t samplers = number(3, 60);
  at::manual_seed(1);
  fmt::print("embedding {}, hidden {}, {} samplers, {} thread(s); microseconds\n", size.embedding,
             size.hidden, samplers, at::get_num_threads());
  Bench bench(size, samplers);
  bench.act();
  bench.learn();
  bench.peers();
}
