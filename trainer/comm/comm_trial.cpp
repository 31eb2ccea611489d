// SPDX-License-Identifier: MIT
// One function per operation; the root is always rank 0.
#include "trainer/comm/comm_trial.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "trainer/comm/exchange_plan.h"

namespace dtool::trainer {

namespace {

constexpr int kPeriod = 1021;  // prime, so that no part of a tensor looks like the next

using Tensors = std::vector<at::Tensor>;

at::Tensor make_tensor(const Group& group, std::int64_t elements) {
  return at::zeros({elements}, at::TensorOptions(group.device).dtype(at::kFloat));
}

at::Tensor repeated(const Pattern& pattern, std::int64_t elements) {
  at::Tensor tensor = at::empty({elements}, at::kFloat);
  auto* numbers = tensor.data_ptr<float>();
  for (std::int64_t i = 0; i < elements; ++i) {
    numbers[i] = pattern[static_cast<std::size_t>(i % kPeriod)];
  }
  return tensor;
}

Trial broadcast_trial(const Group& group, std::int64_t elements) {
  const Pattern before = group.rank == 0 ? pattern_of(0) : Pattern{};
  const Slot slot{make_tensor(group, elements), before, pattern_of(0)};
  return {elements * 4,
          1,
          {slot},
          [group, slot] {
            Tensors tensors = {slot.tensor};
            group.process_group->broadcast(tensors)->wait();
          },
          {}};
}

/// Of reduce only rank 0 has the result.
Slot sum_slot(Operation operation, const Group& group, std::int64_t elements) {
  const bool has_result = operation == Operation::all_reduce || group.rank == 0;
  return {make_tensor(group, elements), pattern_of(group.rank),
          has_result ? pattern_of_sum(group.size) : Pattern{}};
}

Trial library_sum_trial(Operation operation, const Group& group, std::int64_t elements) {
  const Slot slot = sum_slot(operation, group, elements);
  return {elements * 4,
          1,
          {slot},
          [=] {
            Tensors tensors = {slot.tensor};
            if (operation == Operation::reduce) {
              group.process_group->reduce(tensors)->wait();
            } else {
              group.process_group->allreduce(tensors)->wait();
            }
          },
          {}};
}

Trial own_sum_trial(Algorithm algorithm, const Group& group, std::int64_t elements,
                    Transport& transport) {
  const Slot slot = sum_slot(Operation::all_reduce, group, elements);
  const auto plan = plan_all_reduce(algorithm, group.rank, group.size, elements);
  return {elements * 4,
          1,
          {slot},
          [slot, plan, &transport] { transport.perform(plan, slot.tensor.data_ptr<float>()); },
          {}};
}

/// Each rank's part, where all come together.
std::vector<Slot> parts_of_all(const Group& group, std::int64_t elements) {
  std::vector<Slot> slots;
  for (int rank = 0; rank < group.size; ++rank) {
    slots.push_back({make_tensor(group, elements), {}, pattern_of(rank)});
  }
  return slots;
}

Tensors tensors_of(const std::vector<Slot>& slots) {
  Tensors tensors;
  for (const Slot& each : slots) tensors.push_back(each.tensor);
  return tensors;
}

Trial gathering_trial(Operation operation, const Group& group, std::int64_t elements) {
  const Slot mine{make_tensor(group, elements), pattern_of(group.rank), {}};
  std::vector<Slot> slots;
  if (operation == Operation::all_gather || group.rank == 0) slots = parts_of_all(group, elements);
  const Tensors parts = tensors_of(slots);
  slots.push_back(mine);
  return {elements * group.size * 4,
          1,
          slots,
          [=] {
            std::vector<Tensors> outputs;
            if (!parts.empty()) outputs.push_back(parts);
            Tensors inputs = {mine.tensor};
            if (operation == Operation::all_gather) {
              group.process_group->allgather(outputs, inputs)->wait();
            } else {
              group.process_group->gather(outputs, inputs)->wait();
            }
          },
          {}};
}

Trial scatter_trial(const Group& group, std::int64_t elements) {
  const Slot mine{make_tensor(group, elements), {}, pattern_of(group.rank)};
  std::vector<Slot> slots;
  for (int rank = 0; group.rank == 0 && rank < group.size; ++rank) {
    slots.push_back({make_tensor(group, elements), pattern_of(rank), {}});
  }
  const Tensors parts = tensors_of(slots);
  slots.push_back(mine);
  return {elements * group.size * 4,
          1,
          slots,
          [=] {
            std::vector<Tensors> inputs;
            if (!parts.empty()) inputs.push_back(parts);
            Tensors outputs = {mine.tensor};
            group.process_group->scatter(outputs, inputs)->wait();
          },
          {}};
}

/// What both kinds of messages need: this rank's numbers and, after them in one tensor, room for
/// the numbers that come.
struct Message {
  int peer = kNobody;
  bool is_first = false;
  std::int64_t elements = 0;
  at::Tensor both;

  at::Tensor mine() const { return both.slice(0, 0, elements); }
  at::Tensor theirs() const { return both.slice(0, elements, 2 * elements); }
  Section mine_range() const { return {0, elements}; }
  Section theirs_range() const { return {elements, 2 * elements}; }
};

/// The first sends and waits; the other sends back what came.
Plan ping_pong_plan(const Message& message) {
  const Section outgoing = message.is_first ? message.mine_range() : message.theirs_range();
  const Round send{message.peer, outgoing, kNobody, {}, Combine::replace};
  const Round receive{kNobody, {}, message.peer, message.theirs_range(), Combine::replace};
  return message.is_first ? Plan{send, receive} : Plan{receive, send};
}

void ping_pong(const Message& message, c10d::ProcessGroup& group) {
  Tensors mine = {message.mine()};
  Tensors theirs = {message.theirs()};
  if (message.is_first) group.send(mine, message.peer, 0)->wait();
  group.recv(theirs, message.peer, 0)->wait();
  if (!message.is_first) group.send(theirs, message.peer, 0)->wait();
}

/// NCCL does one message after the other, in vain here, unless they are told to be one. A template:
/// LibTorch has it from 2.1 on.
template <class ProcessGroup>
void exchange_on_gpus(ProcessGroup& group, Tensors& mine, Tensors& theirs, int peer) {
  if constexpr (requires { group.endCoalescing(at::kCUDA); }) {
    group.startCoalescing(at::kCUDA);
    group.recv(theirs, peer, 0);
    group.send(mine, peer, 0);
    group.endCoalescing(at::kCUDA)->wait();
  }
}

void exchange_at_once(const Message& message, c10d::ProcessGroup& group) {
  Tensors mine = {message.mine()};
  Tensors theirs = {message.theirs()};
  if (message.both.is_cuda()) return exchange_on_gpus(group, mine, theirs, message.peer);
  const auto receiving = group.recv(theirs, message.peer, 0);
  const auto sending = group.send(mine, message.peer, 0);
  sending->wait();
  receiving->wait();
}

/// There and back: what the first sends comes back from the second.
Trial ping_pong_trial(const Message& message, const Group& group, Transport* transport, int first) {
  Trial trial{message.elements * 4, 2, {}, {}, {}};
  trial.slots = {{message.mine(), pattern_of(first), {}},
                 {message.theirs(), {}, pattern_of(first)}};
  trial.run = [=, plan = ping_pong_plan(message)] {
    if (transport != nullptr) {
      transport->perform(plan, message.both.data_ptr<float>());
    } else {
      ping_pong(message, *group.process_group);
    }
  };
  return trial;
}

Trial both_ways_trial(const Message& message, const Group& group, Transport* transport) {
  Trial trial{message.elements * 4, 1, {}, {}, {}};
  trial.slots = {{message.mine(), pattern_of(group.rank), {}},
                 {message.theirs(), {}, pattern_of(message.peer)}};
  const Plan plan = {
      {message.peer, message.mine_range(), message.peer, message.theirs_range(), Combine::replace}};
  trial.run = [=] {
    if (transport != nullptr) {
      transport->perform(plan, message.both.data_ptr<float>());
    } else {
      exchange_at_once(message, *group.process_group);
    }
  };
  return trial;
}

Trial message_trial(Operation operation, const Group& group, std::int64_t elements,
                    Transport* transport, const Pair& pair) {
  if (group.rank != pair.first && group.rank != pair.second) {
    return {elements * 4, operation == Operation::send_recv ? 2 : 1, {}, [] {}, {}};
  }
  Message message;
  message.is_first = group.rank == pair.first;
  message.peer = message.is_first ? pair.second : pair.first;
  message.elements = elements;
  message.both = make_tensor(group, 2 * elements);
  if (operation == Operation::isend_irecv) return both_ways_trial(message, group, transport);
  return ping_pong_trial(message, group, transport, pair.first);
}

}  // namespace

Pattern pattern_of(int rank) {
  Pattern pattern(kPeriod);
  for (int i = 0; i < kPeriod; ++i) {
    pattern[static_cast<std::size_t>(i)] = static_cast<float>((i + 5 * rank) % kPeriod + rank);
  }
  return pattern;
}

Pattern pattern_of_sum(int size) {
  Pattern sum(kPeriod);
  for (int rank = 0; rank < size; ++rank) {
    const Pattern addend = pattern_of(rank);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += addend[i];
  }
  return sum;
}

std::int64_t count_wrong(const Slot& slot) {
  if (slot.after.empty()) return 0;
  const at::Tensor found = slot.tensor.cpu();
  return found.ne(repeated(slot.after, found.numel())).sum().item<std::int64_t>();
}

void fill(const std::vector<Slot>& slots) {
  for (const Slot& each : slots) {
    if (each.before.empty()) {
      each.tensor.fill_(std::numeric_limits<float>::quiet_NaN());
    } else {
      each.tensor.copy_(repeated(each.before, each.tensor.numel()));
    }
  }
}

Trial make_trial(Operation operation, const Way& way, std::int64_t bytes, const Group& group,
                 Transport* transport, const Pair& pair) {
  const std::int64_t elements = std::max<std::int64_t>(bytes / 4, 1);
  const std::int64_t share = std::max<std::int64_t>(elements / group.size, 1);
  switch (operation) {
    case Operation::send_recv:
    case Operation::isend_irecv:
      return message_trial(operation, group, elements,
                           way.kind == Way::Kind::library ? nullptr : transport, pair);
    case Operation::broadcast:
      return broadcast_trial(group, elements);
    case Operation::reduce:
    case Operation::all_reduce:
      if (way.kind == Way::Kind::library) return library_sum_trial(operation, group, elements);
      return own_sum_trial(way.algorithm, group, elements, *transport);
    case Operation::gather:
    case Operation::all_gather:
      return gathering_trial(operation, group, share);
    case Operation::scatter:
      return scatter_trial(group, share);
    case Operation::barrier:
      break;
  }
  throw std::logic_error("a barrier has no tensors");
}

Trial make_barrier_trial(const Group& group, c10d::Store& store) {
  const auto run = [group] { wait_for_all_ranks(group); };
  const auto check = [group, run, &store, round = 0]() mutable -> std::int64_t {
    ++round;
    store.add("comm/barrier", 1);
    run();
    return store.add("comm/barrier", 0) < static_cast<std::int64_t>(round) * group.size ? 1 : 0;
  };
  return {0, 1, {}, run, check};
}

// Incoming numbers wait in a separate tensor until the outgoing ones have been sent.

void LibraryTransport::perform(const Plan& plan, float* tensor) {
  for (const Round& each : plan) exchange(tensor, each);
}

void LibraryTransport::exchange(float* tensor, const Round& round) {
  std::vector<at::Tensor> outgoing;
  std::vector<at::Tensor> incoming;
  c10::intrusive_ptr<c10d::Work> sending;
  c10::intrusive_ptr<c10d::Work> receiving;
  if (round.receive_from != kNobody && round.receive.size() > 0) {
    incoming = {at::empty({round.receive.size()}, at::kFloat)};
    receiving = group_.process_group->recv(incoming, round.receive_from, 0);
  }
  if (round.send_to != kNobody && round.send.size() > 0) {
    outgoing = {at::from_blob(tensor + round.send.begin, {round.send.size()}, at::kFloat)};
    sending = group_.process_group->send(outgoing, round.send_to, 0);
  }
  if (sending) sending->wait();
  if (!receiving) return;
  receiving->wait();
  combine(tensor + round.receive.begin, incoming[0].data_ptr<float>(),
          static_cast<std::size_t>(round.receive.size()), round.combine);
}

}  // namespace dtool::trainer
