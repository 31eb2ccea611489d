// SPDX-License-Identifier: MIT
// One of a run, which has been let in by the run's store, and says what it likes then.
#pragma once

#include <chrono>
#include <string>

#include "killfiles/channel/wire.h"
#include "trainer/launch/greeting.h"
#include "trainer/ranks/store_server.h"

namespace dtool::trainer {

class StoreClient {
 public:
  explicit StoreClient(const Endpoint& endpoint)
      : StoreClient(call_at(endpoint, kStoreDoor, 0, std::chrono::seconds(60))) {}

  void say(const std::string& request) { wire_.write(channel_.seal(request), kLongestFrame); }

  /// The next answer; or `closed`, or `silent`.
  std::string hear(std::chrono::milliseconds patience) {
    for (;;) {
      if (auto answer = channel_.next()) return *answer;
      std::string bytes;
      const auto read = wire_.read(bytes, kLongestFrame);
      channel_.add(bytes);
      if (read == host::Wire::Read::closed) return "closed";
      if (read == host::Wire::Read::some) continue;
      if (watch_.wait(patience).empty()) return "silent";
      wire_.flush();
    }
  }

 private:
  explicit StoreClient(Call call)
      : wire_(std::move(call.socket), watch_), channel_(std::move(call.channel)) {}

  host::Watch watch_;
  host::Wire wire_;
  host::Channel channel_;
};

}  // namespace dtool::trainer
