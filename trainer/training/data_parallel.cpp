// SPDX-License-Identifier: MIT
// Takes the same steps as torch/nn/parallel/distributed.py around its reducer.
#include "trainer/training/data_parallel.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <torch/version.h>

#include <string_view>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <typeinfo>
#include <utility>

#include "trainer/comm/exchange_plan.h"
#include "trainer/comm/links.h"

namespace dtool::trainer {

namespace {

/// Links lose nothing by smaller buckets, and the last one is exchanged after the backward pass.
constexpr std::size_t kLinkedBucketBytes = 4 << 20;

std::unique_ptr<c10d::Reducer> make_reducer(const Group& group,
                                            const std::vector<at::Tensor>& parameters) {
  // A small first bucket, so that the exchange begins early in the backward pass.
  const std::size_t most = group.gradient_sum ? kLinkedBucketBytes : c10d::kDefaultBucketBytesCap;
  const std::vector<size_t> limits = {c10d::kDefaultFirstBucketBytes, most};
  const std::vector<bool> sparse(parameters.size(), false);
  auto [buckets, bucket_limits] =
      c10d::compute_bucket_assignment_by_size(parameters, limits, sparse);
  // The backward pass finishes the last parameters first.
  std::reverse(buckets.begin(), buckets.end());
  std::reverse(bucket_limits.begin(), bucket_limits.end());
  const auto construct = [&](const auto&... others) {
    using Reducer = c10d::Reducer;
    using Tensors = std::vector<at::Tensor>;
    if constexpr (std::is_constructible_v<Reducer, Tensors, decltype(buckets),
                                          decltype(bucket_limits), decltype(others)...>) {
      return std::make_unique<Reducer>(parameters, buckets, bucket_limits, others...);
    } else if constexpr (std::is_constructible_v<Reducer, Tensors, decltype(buckets),
                                                 decltype(others)..., bool, bool>) {
      // 2.8 dropped the limits and added these.
      return std::make_unique<Reducer>(parameters, buckets, others...,
                                       /*skip_all_reduce_unused_params=*/false,
                                       /*use_python_reducer=*/false);
    } else {
      // 2.11 added this.
      const std::vector<std::int64_t> bucket_bytes_cap_list;
      return std::make_unique<Reducer>(parameters, buckets, others..., false, false,
                                       bucket_bytes_cap_list);
    }
  };
  return construct(group.process_group, sparse, static_cast<std::int64_t>(most),
                   /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/true,
                   std::unordered_map<size_t, std::string>{}, c10d::kDefaultFirstBucketBytes);
}

/// Whether gloo threw it, or NCCL (from LibTorch 2 on).
/// Gloo's by the type's name: not every LibTorch comes with its headers.
bool is_of_backend(const std::exception& problem) {
#if TORCH_VERSION_MAJOR >= 2
  if (dynamic_cast<const c10::DistError*>(&problem) != nullptr) return true;
#endif
  return std::string_view(typeid(problem).name()).starts_with("N4gloo");
}

}  // namespace

DataParallel::DataParallel(Group group, std::vector<at::Tensor> parameters)
    : group_(std::move(group)), parameters_(std::move(parameters)) {
  if (group_.size == 1) return;
  for (const at::Tensor& each : parameters_) broadcast(group_, each.detach());
  collectively([&] { reducer_ = make_reducer(group_, parameters_); });
  if (group_.gradient_sum) reducer_->register_comm_hook(std::make_unique<LinkedAverage>(group_));
}

DataParallel::~DataParallel() = default;

void DataParallel::begin_step() {
  for (const at::Tensor& each : parameters_) {
    if (!reducer_) {
      // Without a gradient to add to, autograd hands its own over instead of copying.
      each.mutable_grad().reset();
    } else if (each.grad().defined()) {
      each.grad().zero_();  // a view of the reducer's buckets: never replaced
    }
  }
}

void DataParallel::backward(const at::Tensor& loss, AcrossRanks across) {
  if (!reducer_ || across == AcrossRanks::no) {
    loss.backward();
    return;
  }
  // The reducer exchanges gradients within the backward pass, whose own errors are this rank's.
  try {
    reducer_->prepare_for_backward({});
    loss.backward();
  } catch (const std::exception& problem) {
    if (is_of_backend(problem)) throw CollectiveFailed(first_line(problem));
    throw;
  }
}

void DataParallel::settle(const std::function<at::Tensor()>& loss) {
  if (!reducer_) return;
  begin_step();
  backward(loss(), AcrossRanks::yes);
  collectively([&] { reducer_->rebuild_buckets(); });
}

// One producer, one consumer.

namespace {

/// From here on sending takes milliseconds, and the way to a thread and back some ten microseconds.
constexpr std::size_t kLarge = 1 << 20;

}  // namespace

LinkedAverage::~LinkedAverage() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    // Peers may never answer: this rank has failed in the middle of a step.
    if (!waiting_.empty()) group_.gradient_sum->stop();
  }
  changed_.notify_all();
  thread_.join();
}

c10::intrusive_ptr<c10::ivalue::Future> LinkedAverage::runHook(c10d::GradBucket& bucket) {
  at::Tensor& gradients = bucket.getBufferRef();
  auto averaged = c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get());
  if (gradients.scalar_type() != at::kFloat) {
    std::vector<at::Tensor> tensors = {gradients};
    collectively([&] { group_.process_group->allreduce(tensors)->wait(); });
    gradients.mul_(1.0 / group_.size);
    averaged->markCompleted(gradients);
  } else if (gradients.nbytes() < kLarge && is_idle()) {
    average(gradients);
    averaged->markCompleted(gradients);
  } else {
    leave_to_thread({gradients, averaged});
  }
  return averaged;
}

bool LinkedAverage::is_idle() {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() && !error_;
}

void LinkedAverage::leave_to_thread(Bucket bucket) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(bucket));
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  changed_.notify_all();
}

void LinkedAverage::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !waiting_.empty() || stopped_; });
    if (stopped_) return;
    const Bucket bucket = waiting_.front();
    lock.unlock();
    std::exception_ptr error = error_;  // only this thread sets it
    try {
      if (!error) average(bucket.gradients);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = error;
    waiting_.pop_front();
    lock.unlock();
    // The backward pass, which waits for the last one, may begin the next step at once.
    if (error_) {
      bucket.averaged->setError(error_);
    } else {
      bucket.averaged->markCompleted(bucket.gradients);
    }
    lock.lock();
  }
}

/// Without LibTorch's own threads: the backward pass has them.
void LinkedAverage::average(const at::Tensor& gradients) {
  auto* const numbers = gradients.data_ptr<float>();
  collectively([&] { group_.gradient_sum->add_up(numbers, gradients.numel()); });
  scale(numbers, static_cast<std::size_t>(gradients.numel()),
        static_cast<float>(1.0 / group_.size));
}

}  // namespace dtool::trainer
