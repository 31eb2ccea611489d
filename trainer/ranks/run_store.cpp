// SPDX-License-Identifier: MIT
#include "trainer/ranks/run_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "ssh/wire/words.h"

namespace dtool::trainer {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::string write(const std::vector<std::uint8_t>& value) {
  return write_bytes({reinterpret_cast<const char*>(value.data()), value.size()});
}

std::vector<std::uint8_t> read(const std::string& text) {
  const auto bytes = read_bytes(text);
  return {bytes.begin(), bytes.end()};
}

std::string write_all(const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& each : keys) text += " " + write_bytes(each);
  return text;
}

}  // namespace

RunStore::RunStore(const Endpoint& endpoint, milliseconds timeout,
                   std::shared_ptr<StoreServer> server)
    : RunStore(endpoint, timeout, std::move(server), call_at(endpoint, kStoreDoor, 0, timeout)) {}

RunStore::RunStore(const Endpoint& endpoint, milliseconds timeout,
                   std::shared_ptr<StoreServer> server, Call call)
    : Store(timeout),
      endpoint_(endpoint),
      server_(std::move(server)),
      wire_(std::move(call.socket), watch_),
      channel_(std::move(call.channel)) {}

/// The text after `kind` in the answer. Answers to abandoned requests are skipped.
std::string RunStore::ask(const std::string& request, const std::string& kind,
                          milliseconds timeout) {
  const std::lock_guard lock(mutex_);
  const auto number = ++last_request_;
  const auto begin = fmt::format("{} {}", number, kind);
  const auto deadline = Clock::now() + timeout;
  wire_.write(channel_.seal(fmt::format("{} {}", number, request)), kLongestFrame);
  for (;;) {
    while (const auto answer = channel_.next()) {
      if (answer->starts_with(begin)) return answer->substr(begin.size());
    }
    std::string bytes;
    const auto read = wire_.read(bytes, kLongestFrame);
    channel_.add(bytes);
    if (read == host::Wire::Read::closed)
      throw std::runtime_error("the connection to the run's store closed");
    if (read == host::Wire::Read::some) continue;
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) {
      throw std::runtime_error(
          fmt::format("no answer from the run's store within {} ms", timeout.count()));
    }
    watch_.wait(std::min(left, milliseconds(60'000)));
    wire_.flush();
  }
}

bool RunStore::ask_whether(const std::string& request) {
  return ask(request, "", timeout_) == "yes";
}

std::int64_t RunStore::ask_number(const std::string& request) {
  const auto text = ask(request, "number ", timeout_);
  const auto number = host::parse_number<std::int64_t>(text);
  if (!number) throw std::runtime_error("the run's store answered " + text);
  return *number;
}

void RunStore::set(const std::string& key, const std::vector<std::uint8_t>& value) {
  ask(fmt::format("set {} {}", write_bytes(key), write(value)), "done", timeout_);
}

std::vector<std::uint8_t> RunStore::compareSet(const std::string& key,
                                               const std::vector<std::uint8_t>& expected,
                                               const std::vector<std::uint8_t>& desired) {
  return read(ask(fmt::format("swap {} {} {}", write_bytes(key), write(expected), write(desired)),
                  "value ", timeout_));
}

std::vector<std::uint8_t> RunStore::get(const std::string& key) {
  return read(ask("get " + write_bytes(key), "value ", timeout_));
}

std::int64_t RunStore::add(const std::string& key, std::int64_t value) {
  return ask_number(fmt::format("add {} {}", write_bytes(key), value));
}

bool RunStore::deleteKey(const std::string& key) {
  return ask_whether("delete " + write_bytes(key));
}

bool RunStore::check(const std::vector<std::string>& keys) {
  return keys.empty() || ask_whether("check" + write_all(keys));
}

std::int64_t RunStore::getNumKeys() {
  return ask_number("count");
}

void RunStore::wait(const std::vector<std::string>& keys) {
  wait(keys, timeout_);
}

void RunStore::wait(const std::vector<std::string>& keys, const milliseconds& timeout) {
  if (!keys.empty()) ask("wait" + write_all(keys), "done", timeout);
}

void RunStore::set_will(const std::string& key, const std::string& if_closed,
                        std::chrono::seconds limit, const std::string& if_silent) {
  ask(fmt::format("will {} {} {} {}", write_bytes(key), write_bytes(if_closed), limit.count(),
                  write_bytes(if_silent)),
      "done", timeout_);
}

c10::intrusive_ptr<c10d::Store> RunStore::clone() {
  return c10::make_intrusive<RunStore>(endpoint_, timeout_, server_);
}

}  // namespace dtool::trainer
