// SPDX-License-Identifier: MIT
// The policy handles all samplers at once, then all of them take their step.
#include "trainer/reinforcement/rollout.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "trainer/ranks/process_group.h"
#include "trainer/reinforcement/actions.h"

namespace dtool::trainer {

namespace {

template <class Value>
std::span<Value> values_of(const at::Tensor& tensor) {
  return {tensor.data_ptr<Value>(), static_cast<std::size_t>(tensor.numel())};
}

/// A GPU copies from pinned memory while the CPU goes on.
at::Tensor reachable(const at::Tensor& tensor, at::Device device) {
  return device.is_cuda() ? tensor.pin_memory() : tensor;
}

const std::vector<std::uint8_t> kThere = {1};

/// Every rank's training, and its thread, is past a rollout that is this old.
constexpr std::int64_t kForgotten = 100;

std::string key_of(std::int64_t rollout, const char* what) {
  return fmt::format("rollout/{}/{}", rollout, what);
}

}  // namespace

Rollout::Rollout(std::int64_t num_steps, std::int64_t samplers, const Policy& policy)
    : observations(reachable(
          at::zeros({num_steps + 1, samplers, policy.spec().observation_bytes()}, at::kByte),
          policy.device())),
      actions(reachable(at::zeros({num_steps, samplers, policy.spec().actions.values()}),
                        policy.device())),
      log_probs(reachable(at::zeros({num_steps, samplers}), policy.device())),
      values(reachable(at::zeros({num_steps + 1, samplers}), policy.device())),
      rewards(at::zeros({num_steps, samplers})),
      last_values(at::zeros({num_steps, samplers})),
      keep(reachable(at::zeros({num_steps + 1, samplers}), policy.device())),
      memory_at_start(at::zeros({samplers, policy.memory_size()}, policy.device())) {}

/// One half of the samplers takes its step while the policy looks at the other.
std::vector<Collector::Part> Collector::parts_of(const Environments& samplers) {
  const int count = samplers.count();
  if (!samplers.steps_meanwhile() || count == 1) return {{0, count}};
  return {{0, count / 2}, {count / 2, count}};
}

Collector::Collector(Environments& samplers, const Policy& policy, double gamma, std::uint64_t seed,
                     std::int64_t first_sampler, const CudaGraphSetting& graph,
                     GraphedStep::GiveUp note)
    : samplers_(samplers),
      parts_(parts_of(samplers)),
      policy_(policy),
      seed_(seed),
      first_sampler_(first_sampler),
      memory_(at::zeros({samplers.count(), policy.memory_size()}, policy.device())),
      keep_(at::zeros({samplers.count()})),
      answers_(
          at::zeros({samplers.count(), policy.spec().actions.parameters() + 1}, policy.device())),
      gamma_(gamma),
      endings_(static_cast<std::size_t>(samplers.count())),
      last_observations_(
          at::zeros({samplers.count(), policy.spec().observation_bytes()}, at::kByte)) {
  if (samplers.spec() != policy.spec())
    throw std::logic_error("the policy is made for other environments");
  if (samplers.spec().scores.empty())
    throw std::logic_error("environments without a score: by none could a checkpoint be best");
  for (const Part& part : parts_) {
    const auto work = [this, part](const std::vector<at::Tensor>& inputs) {
      answers_.slice(0, part.begin, part.end).copy_(look(part, inputs[0], inputs[1]));
    };
    recorded_.push_back(graphed_step(graph, policy.device(), Replay::right, work, note));
  }
}

/// A step that is running writes into this, and into a rollout that may be gone soon.
Collector::~Collector() {
  try {
    samplers_.wait();
  } catch (const std::exception&) {
    // A failure that nobody waits for any more.
  }
}

void Collector::collect(Rollout& rollout, std::int64_t first_step,
                        const std::function<bool(std::int64_t)>& is_enough) {
  const c10::NoGradGuard no_gradients;
  rollout.memory_at_start.copy_(memory_);
  rollout.keep[0].copy_(keep_);
  samplers_.observe(values_of<std::uint8_t>(rollout.observations[0]));
  rollout.last_values.zero_();
  rollout.steps = 0;
  while (rollout.steps < rollout.capacity()) {
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      act(rollout, part, first_step);
      if (parts_.size() > 1) finish_step();  // the other part's, which went on meanwhile
      begin_step(rollout, parts_[part]);
      if (parts_.size() == 1) finish_step();
    }
    ++rollout.steps;
    if (is_enough(rollout.steps)) break;
  }
  finish_step();
  const auto end = rollout.steps;
  keep_.copy_(rollout.keep[end]);
  // The value of the state after the last step. The next rollout computes it again.
  rollout.values[end].copy_(
      policy_.act(rollout.observations[end], memory_, rollout.keep[end]).values);
}

/// Chooses the actions of the rollout's next step.
void Collector::act(Rollout& rollout, std::size_t part, std::int64_t first_step) {
  const auto [begin, end] = parts_[part];
  const auto rows = [&](const at::Tensor& all) { return all.slice(0, begin, end); };
  const auto t = rollout.steps;
  at::Tensor answers;
  if (auto& recorded = recorded_[part]) {
    recorded->run({rows(rollout.observations[t]), rows(rollout.keep[t])});
    answers = rows(answers_).cpu();
  } else {
    answers = look(parts_[part], rows(rollout.observations[t]), rows(rollout.keep[t])).cpu();
  }
  const auto parameters = policy_.spec().actions.parameters();
  rows(rollout.values[t]).copy_(answers.select(1, parameters));
  sample_actions(answers.narrow(1, 0, parameters), policy_.spec().actions, seed_,
                 first_sampler_ + begin, first_step + t, rows(rollout.actions[t]).data_ptr<float>(),
                 rows(rollout.log_probs[t]).data_ptr<float>());
}

/// The policy's logits and values, [N, P + 1] on its device. Its memory goes on.
at::Tensor Collector::look(const Part& part, const at::Tensor& observations,
                           const at::Tensor& keep) {
  const at::Tensor memory = memory_.slice(0, part.begin, part.end);
  const PolicyOutput seen = policy_.act(observations, memory, keep);
  memory.copy_(seen.memory);
  return seen.both;
}

void Collector::begin_step(Rollout& rollout, const Part& part) {
  const auto t = rollout.steps;
  stepped_ = part;
  stepped_keep_ = rollout.keep[t + 1].data_ptr<float>();
  stepped_values_ = rollout.last_values[t].data_ptr<float>();
  samplers_.begin(part.begin, part.end,
                  {values_of<float>(rollout.actions[t]), values_of<float>(rollout.rewards[t]),
                   endings_, values_of<std::uint8_t>(rollout.observations[t + 1]),
                   values_of<std::uint8_t>(last_observations_)});
}

/// Waits for the step that was begun last, if it has not been waited for.
void Collector::finish_step() {
  samplers_.wait();
  for (int i = stepped_.begin; i < stepped_.end; ++i) {
    stepped_keep_[i] = endings_[static_cast<std::size_t>(i)] == Ending::none ? 1.0F : 0.0F;
  }
  add_values_of_last_states();
  stepped_ = {};
}

/// An episode that a limit cut off would have gone on: the discounted value of the state that it
/// would have gone on from is part of its return (Pardo et al. 2018,
/// https://arxiv.org/abs/1712.00378, section 4).
void Collector::add_values_of_last_states() {
  std::vector<std::int64_t> cut_off;
  for (int i = stepped_.begin; i < stepped_.end; ++i) {
    if (endings_[static_cast<std::size_t>(i)] == Ending::truncated) cut_off.push_back(i);
  }
  if (cut_off.empty()) return;
  const at::Tensor rows = at::tensor(cut_off, at::kLong);
  const at::Tensor keep = at::ones({rows.numel()});
  const at::Tensor values = policy_
                                .act(last_observations_.index_select(0, rows),
                                     memory_.index_select(0, rows.to(memory_.device())), keep)
                                .values.cpu()
                                .contiguous();
  const float* value = values.data_ptr<float>();
  for (const std::int64_t each : cut_off) {
    stepped_values_[each] = static_cast<float>(gamma_) * *value++;
  }
}

void Collector::advance() {
  samplers_.advance();
  keep_.zero_();
}

void Collector::restore(const at::Tensor& memory, const at::Tensor& keep) {
  memory_.narrow(0, 0, memory.size(0)).copy_(memory);
  keep_.narrow(0, 0, keep.size(0)).copy_(keep);
}

ReturnScale::ReturnScale(std::int64_t samplers, double gamma)
    : gamma_(gamma), returns_(at::zeros({samplers}, at::kDouble)), moments_(1, at::kCPU) {}

void ReturnScale::apply(Rollout& rollout, const Group& group) {
  constexpr double kFurthest = 10;
  at::Tensor rewards = rollout.rewards.narrow(0, 0, rollout.steps);
  const at::Tensor returns = rewards.to(at::kDouble);
  for (std::int64_t t = 0; t < rollout.steps; ++t) {
    returns_.mul_(rollout.keep[t]).mul_(gamma_).add_(returns[t]);
    returns[t].copy_(returns_);
  }
  moments_.update(returns.unsqueeze(-1), group);
  rewards.div_(std::sqrt(moments_.variance().item<double>() + 1e-8));
  rewards.clamp_(-kFurthest, kFurthest);
}

void ReturnScale::restore(const std::vector<NamedTensor>& kept, const SamplerRange& mine) {
  for (const NamedTensor& each : kept) {
    for (const NamedTensor& own : statistics()) {
      if (own.name == each.name && own.tensor.sizes() == each.tensor.sizes())
        own.tensor.copy_(each.tensor);
    }
    if (each.name != "returns.now" || each.tensor.dim() != 1) continue;
    const std::int64_t first = std::min(each.tensor.numel(), mine.first);
    const std::int64_t count = std::min(each.tensor.numel() - first, mine.count);
    returns_.narrow(0, 0, count).copy_(each.tensor.narrow(0, first, count));
  }
}

// The keys in the store: `rollout/<number>/finished` counts the ranks that have finished it, and
// `rollout/<number>/enough` appears once they are enough.

std::int64_t ranks_to_wait_for(double share, std::int64_t ranks) {
  // 0.55 of 20 is a little more than 11 in binary.
  const double exactly = share * static_cast<double>(ranks);
  const auto needed = static_cast<std::int64_t>(std::ceil(exactly - 1e-9));
  return needed < ranks ? needed : 0;
}

Stragglers::Stragglers(const Meeting& meeting, double share, std::chrono::milliseconds timeout)
    : meeting_(meeting),
      needed_(ranks_to_wait_for(share, meeting.place.world_size)),
      timeout_(timeout) {}

Stragglers::~Stragglers() {
  if (!thread_.joinable()) return;
  stopped_ = true;
  try {
    // Wakes the thread. Ranks that ended earlier have let it go on to numbers of no rollout.
    meeting_.store->set(key_of(awaited(), "enough"), kThere);
  } catch (const std::exception&) {
    // The store is gone, which wakes the thread as well.
  }
  thread_.join();
}

void Stragglers::begin(std::int64_t rollout) {
  rollout_ = rollout;
  if (needed_ > 0 && !thread_.joinable()) thread_ = std::thread([this] { listen(); });
}

void Stragglers::finish() {
  if (needed_ == 0) return;
  collectively([&] {
    const auto finished = meeting_.store->add(key_of(rollout_, "finished"), 1);
    if (finished != needed_) return;
    meeting_.store->set(key_of(rollout_, "enough"), kThere);
    meeting_.store->deleteKey(key_of(rollout_ - kForgotten, "finished"));
    meeting_.store->deleteKey(key_of(rollout_ - kForgotten, "enough"));
  });
}

/// While `stopped_` is set, the thread does not go on to another.
std::int64_t Stragglers::awaited() const {
  return std::max(finished_ + 1, rollout_.load());
}

void Stragglers::listen() {
  while (!stopped_) {
    try {
      const auto store = connect_store(meeting_.place.listener, timeout_);
      while (!stopped_) {
        const auto next = awaited();
        store->wait({key_of(next, "enough")}, timeout_);
        finished_.store(next);
      }
    } catch (const std::exception&) {
      // A rollout longer than the timeout, after which the connection is of no more use; or the
      // store is gone, which this rank's training notices by itself.
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

}  // namespace dtool::trainer
