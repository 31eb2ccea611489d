// SPDX-License-Identifier: MIT
// One producer, one consumer.
#include "trainer/training/linked_average.h"

#include <ATen/ATen.h>

#include <utility>

#include "trainer/comm/combine.h"
#include "trainer/comm/gradient_sum.h"

namespace dtool::trainer {
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
