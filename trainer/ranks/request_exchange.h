// A rank's second connection to the store, with a thread of its own: tells rank 0, which writes the
// checkpoints, what signals ask of the other ranks (launch/requests.h), and them that it has been
// done. A rank that loses the store stops, and so do all when one says that it has failed.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "trainer/ranks/rendezvous.h"

namespace dtool::trainer {

/// Lives from the rendezvous to the end of a run of several ranks.
class RequestExchange {
 public:
  /// `stop_process` is called with the reason, from the thread, when the store gives no answer for
  /// `patience` or is gone, or another rank has failed; it must not return.
  RequestExchange(const Meeting& meeting, std::chrono::seconds patience,
                  std::function<void(const std::string&)> stop_process);
  ~RequestExchange();
  RequestExchange(const RequestExchange&) = delete;
  RequestExchange& operator=(const RequestExchange&) = delete;

  /// Waits until every rank has come here too: all went well.
  void leave();
  /// This rank has failed: tells the others why, if that is still possible.
  void announce(const std::string& reason) noexcept;

 private:
  void work(std::chrono::seconds patience);
  void stop();
  void exchange(c10d::Store& store);
  void tell(c10d::Store& store);
  void hear(c10d::Store& store);

  Meeting meeting_;
  std::function<void(const std::string&)> stop_process_;
  std::array<std::int64_t, 2> heard_{};  ///< rank 0: how often each signal has been told of
  std::int64_t fulfilled_ = 0;           ///< rank 0: told; others: when they asked
  bool has_asked_to_end_ = false;
  std::atomic<bool> has_failed_ = false;  ///< this rank
  std::mutex mutex_;
  std::condition_variable stopping_;
  bool is_stopped_ = false;
  std::thread thread_;  ///< last, so that it starts when the others are there
};

}  // namespace dtool::trainer
