// SPDX-License-Identifier: MIT
// The handlers only set flags; SIGALRM ends the wait.
#include "trainer/launch/requests.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace dtool::trainer {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<int> request = 0;
std::atomic<bool> terminated = false;
std::atomic<Clock::duration::rep> checkpoint_taken_at = 0;
std::atomic<Clock::duration::rep> end_taken_at = 0;
std::atomic<Clock::duration::rep> end_kept_at = 0;
std::atomic<std::int64_t> kept_ends = 0;
std::atomic<bool> is_answering = false;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

Clock::duration::rep now() {
  return Clock::now().time_since_epoch().count();
}

/// For handlers, too.
void end_by_termination() {
  signal(SIGTERM, SIG_DFL);
  raise(SIGTERM);
}

void heed(int signal_number) {
  if (signal_number == SIGALRM) return end_by_termination();
  if (signal_number == SIGHUP) signal_number = SIGTERM;
  if (signal_number == SIGTERM && !terminated.exchange(true)) alarm(kTerminationGrace.count());
  pass_request(signal_number);
}

void handle(int signal_number, void (*handler)(int)) {
  struct sigaction action = {};
  sigaction(signal_number, nullptr, &action);
  if (signal_number == SIGHUP && action.sa_handler == SIG_IGN) return;
  action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal_number, &action, nullptr);
}

}  // namespace

void ignore_checkpoint_signal() {
  signal(SIGUSR1, SIG_IGN);
}

void await_requests() {
  for (const int each : {SIGUSR1, SIGTERM, SIGHUP, SIGALRM}) handle(each, heed);
}

void await_no_requests() {
  for (const int each : {SIGTERM, SIGHUP}) handle(each, SIG_DFL);
  end_if_terminated();
}

int take_request() {
  if (request == 0) return 0;
  const int signal_number = request.exchange(0);
  (signal_number == SIGTERM ? end_taken_at : checkpoint_taken_at) = now();
  return signal_number;
}

/// The end is what counts where both are asked for.
void pass_request(int signal_number) {
  int none = 0;
  if (signal_number == SIGTERM) {
    request = SIGTERM;
  } else {
    request.compare_exchange_strong(none, signal_number);
  }
}

bool is_terminated() {
  return terminated;
}

void end_if_terminated() {
  if (!terminated) return;
  std::fflush(nullptr);
  end_by_termination();
}

Clock::time_point last_taken(int signal_number) {
  const auto& at = signal_number == SIGTERM ? end_taken_at : checkpoint_taken_at;
  return Clock::time_point(Clock::duration(at));
}

void note_end_is_kept() {
  end_kept_at = now();
  ++kept_ends;
}

std::int64_t ends_kept() {
  return kept_ends;
}

bool last_end_is_kept() {
  return end_kept_at >= end_taken_at;
}

AnswersTermination::AnswersTermination() {
  is_answering = true;
}

AnswersTermination::~AnswersTermination() {
  is_answering = false;
}

bool answers_termination() {
  return is_answering;
}

}  // namespace dtool::trainer
