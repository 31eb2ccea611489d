// Sees to it that no rank waits for one that is gone: a thread that tells the others it is alive,
// listens for the news that the run has failed, and a way for the first to notice to tell
// everybody.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "trainer/launch/own_pause.h"
#include "trainer/ranks/rendezvous.h"
#include "trainer/ranks/request_exchange.h"

namespace dtool::trainer {

/// Lives from the rendezvous to the end of a run of several ranks.
class FailureWatch {
 public:
  /// `stop_process` is called with the reason, from the watching thread, once the run is known to
  /// have failed elsewhere; it must not return. `silence` is how long a rank may give no sign of
  /// life.
  FailureWatch(const Meeting& meeting, std::chrono::seconds silence,
               std::function<void(const std::string&)> stop_process);
  ~FailureWatch();
  FailureWatch(const FailureWatch&) = delete;
  FailureWatch& operator=(const FailureWatch&) = delete;

  /// Tells all ranks that this one fails, and why, unless another failed first.
  void announce(const std::string& reason);

  /// After a collective operation failed with `error`: why the run failed, in a sentence that names
  /// the first rank known to have failed, or `error` itself. Takes 3 to 5 s, as long as it takes
  /// to notice whose signs of life have stopped; calls `stop_process` if the store itself gives no
  /// answer in 10 s.
  std::string find_cause(const std::string& error);

  /// Waits until every rank has come here too, then ends the watch: the run is over, all went well.
  void leave();

 private:
  void watch();
  void stop();
  std::vector<std::int64_t> read_beats(c10d::Store& store);
  void look_for_silence(c10d::Store& store);
  void let_others_read() const;  ///< the store ends with rank 0, so rank 0 stays a little
  std::string lost_listener() const;

  Meeting meeting_;
  RequestExchange requests_;
  std::chrono::seconds silence_;
  std::function<void(const std::string&)> stop_process_;
  std::vector<std::int64_t> last_beats_;                             ///< rank 0 only, by rank
  std::vector<std::chrono::steady_clock::time_point> last_changes_;  ///< rank 0 only, by rank
  OwnPause pause_;                                                   ///< rank 0 only
  std::atomic<bool> failing_ =
      false;  ///< this rank is ending by itself, with an exit code of its own
  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace dtool::trainer
