// SPDX-License-Identifier: MIT
// c10d's Store over a StoreServer, for LibTorch and this program.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "killfiles/channel/wire.h"
#include "trainer/launch/greeting.h"
#include "trainer/ranks/store_server.h"

namespace dtool::trainer {

/// A connection to the server. Threads may share it; requests run one after another.
class RunStore : public c10d::Store {
 public:
  /// Connects within `timeout`, which also applies to requests. `server` is kept alive. Throws
  /// NotOfThisRun, or std::runtime_error if there is no listener.
  RunStore(const Endpoint& endpoint, std::chrono::milliseconds timeout,
           std::shared_ptr<StoreServer> server);

  void set(const std::string& key, const std::vector<std::uint8_t>& value) override;
  std::vector<std::uint8_t> compareSet(const std::string& key,
                                       const std::vector<std::uint8_t>& expected,
                                       const std::vector<std::uint8_t>& desired) override;
  std::vector<std::uint8_t> get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t value) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  std::int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;

  /// The values that `key` gets if it has none: when this connection ends, and when it is silent
  /// for `limit`, up to kLongestSilence. Empty: none.
  void set_will(const std::string& key, const std::string& if_closed, std::chrono::seconds limit,
                const std::string& if_silent);

  /// Later versions of LibTorch call it: another connection.
  virtual c10::intrusive_ptr<c10d::Store> clone();

 private:
  RunStore(const Endpoint& endpoint, std::chrono::milliseconds timeout,
           std::shared_ptr<StoreServer> server, Call call);
  std::string ask(const std::string& request, const std::string& kind,
                  std::chrono::milliseconds timeout);
  bool ask_whether(const std::string& request);
  std::int64_t ask_number(const std::string& request);

  Endpoint endpoint_;
  std::shared_ptr<StoreServer> server_;
  std::mutex mutex_;
  host::Watch watch_;
  host::Wire wire_;
  host::Channel channel_;
  std::int64_t last_request_ = 0;
};

}  // namespace dtool::trainer
