// SPDX-License-Identifier: MIT
// One function per operation; the root is always rank 0.
#include "trainer/comm/comm_trial.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

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

Tensors tensors_of(const std::vector<Slot>& slots) {
  Tensors tensors;
  for (const Slot& each : slots) tensors.push_back(each.tensor);
  return tensors;
}

/// Each rank's part, where all come together; else nothing.
std::vector<Slot> parts_of_all(Operation operation, const Group& group, std::int64_t elements) {
  std::vector<Slot> slots;
  if (operation != Operation::all_gather && group.rank != 0) return slots;
  for (int rank = 0; rank < group.size; ++rank) {
    const Pattern its = pattern_of(rank);
    const bool is_given = operation == Operation::scatter;
    slots.push_back(
        {make_tensor(group, elements), is_given ? its : Pattern{}, is_given ? Pattern{} : its});
  }
  return slots;
}

/// This rank's tensor in an operation of the library.
Slot own_slot(Operation operation, const Group& group, std::int64_t elements) {
  Slot slot{make_tensor(group, elements), pattern_of(group.rank), {}};
  if (operation == Operation::broadcast) {
    if (group.rank != 0) slot.before = {};
    slot.after = pattern_of(0);
  } else if (operation == Operation::scatter) {
    std::swap(slot.before, slot.after);
  } else if (operation == Operation::all_reduce ||
             (operation == Operation::reduce && group.rank == 0)) {
    slot.after = pattern_of_sum(group.size);
  }
  return slot;
}

/// `mine` is this rank's tensor, `parts` are all ranks', on the ranks that have them.
void run_on_library(Operation operation, c10d::ProcessGroup& group, Tensors mine,
                    const Tensors& parts) {
  std::vector<Tensors> all;
  if (!parts.empty()) all.push_back(parts);
  switch (operation) {
    case Operation::broadcast:
      return void(group.broadcast(mine)->wait());
    case Operation::reduce:
      return void(group.reduce(mine)->wait());
    case Operation::all_reduce:
      return void(group.allreduce(mine)->wait());
    case Operation::gather:
      return void(group.gather(all, mine)->wait());
    case Operation::all_gather:
      return void(group.allgather(all, mine)->wait());
    default:
      return void(group.scatter(mine, all)->wait());
  }
}

/// An operation of all ranks; `elements` are those of a tensor.
Trial library_trial(Operation operation, const Group& group, std::int64_t elements) {
  const bool has_parts = operation == Operation::gather || operation == Operation::all_gather ||
                         operation == Operation::scatter;
  std::vector<Slot> slots;
  if (has_parts) slots = parts_of_all(operation, group, elements);
  const Tensors parts = tensors_of(slots);
  slots.push_back(own_slot(operation, group, elements));
  const Tensors mine = {slots.back().tensor};
  return {elements * 4 * (has_parts ? group.size : 1),
          1,
          slots,
          [=] { run_on_library(operation, *group.process_group, mine, parts); },
          {}};
}

Trial own_sum_trial(Way way, const Group& group, std::int64_t elements, Transport& transport) {
  const Slot slot = own_slot(Operation::all_reduce, group, elements);
  const auto plan = plan_all_reduce(way, group.rank, group.size, elements);
  return {elements * 4,
          1,
          {slot},
          [slot, plan, &transport] { transport.perform(plan, slot.tensor.data_ptr<float>()); },
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

Trial make_trial(Operation operation, Way way, std::int64_t bytes, const Group& group,
                 Transport* transport, const Pair& pair) {
  const std::int64_t elements = std::max<std::int64_t>(bytes / 4, 1);
  switch (operation) {
    case Operation::send_recv:
    case Operation::isend_irecv:
      return message_trial(operation, group, elements, way == Way::library ? nullptr : transport,
                           pair);
    case Operation::broadcast:
    case Operation::reduce:
    case Operation::all_reduce:
      if (way == Way::library) return library_trial(operation, group, elements);
      return own_sum_trial(way, group, elements, *transport);
    case Operation::gather:
    case Operation::all_gather:
    case Operation::scatter:
      return library_trial(operation, group, std::max<std::int64_t>(elements / group.size, 1));
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
