// SPDX-License-Identifier: MIT
// A rank's second connection to the store, with its own thread. Through it rank 0, which writes the
// checkpoints, learns of signals that other ranks received (launch/requests.h), and the others
// learn that the checkpoint is written. A rank that loses the store stops; so do all ranks if one
// reports a failure, loses this connection, or is silent: each rank asks the store
// once a second, and that is its heartbeat.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "trainer/ranks/rendezvous.h"

namespace dtool::trainer {

/// Lives from the rendezvous to the end of a run of several ranks.
class RequestExchange {
 public:
  /// The thread calls `stop_process` with the reason if the store gives no answer for
  /// `heartbeat_timeout` or is gone, or if another rank has failed or is silent for so long. It
  /// ends the process, or returns if the process is about to end by itself; then it may be called
  /// again.
  RequestExchange(const Meeting& meeting, std::chrono::seconds heartbeat_timeout,
                  std::function<void(const std::string&)> stop_process);
  ~RequestExchange();
  RequestExchange(const RequestExchange&) = delete;
  RequestExchange& operator=(const RequestExchange&) = delete;

  /// Waits until every rank has called this: all went well.
  void leave();
  /// This rank has failed: tells the others why, if possible.
  void announce(const std::string& reason) noexcept;
  /// After a collective operation that failed: which rank failed first, and why, if the store
  /// learns it within two seconds. Call it only before the end of the process.
  std::optional<std::string> find_first_failure();
  /// Tells the others nothing more: each of them ends by itself.
  void stop();

 private:
  void work();
  bool pause(std::unique_lock<std::mutex>& lock);
  void exchange(c10d::Store& store);
  void tell(c10d::Store& store);
  void hear(c10d::Store& store);

  Meeting meeting_;
  std::chrono::seconds heartbeat_timeout_;
  std::function<void(const std::string&)> stop_process_;
  std::array<std::int64_t, 2> heard_{};  ///< rank 0: how many times each signal was reported
  /// Reported checkpoints; on ranks other than 0: the count when they asked.
  std::int64_t fulfilled_ = 0;
  bool has_asked_to_end_ = false;
  std::atomic<bool> has_failed_ = false;  ///< this rank
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopped_ = false;
  bool is_asked_ = false;  ///< a thread waits for the first failure
  std::optional<std::string> first_failure_;
  std::thread thread_;  ///< last member, so that the thread starts after the others exist
};

}  // namespace dtool::trainer
