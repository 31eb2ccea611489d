// SPDX-License-Identifier: MIT
#include "trainer/ranks/run_store.h"

#include <fmt/format.h>
#include <poll.h>

#include <charconv>
#include <stdexcept>
#include <utility>

#include "trainer/launch/greeting.h"

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

std::unique_ptr<LineSocket> connect(const Endpoint& endpoint, milliseconds timeout) {
  const Call call = call_at(endpoint, kStoreDoor, "client", timeout);
  return std::make_unique<LineSocket>(call.descriptor, kLongestRequest);
}

}  // namespace

RunStore::RunStore(const Endpoint& endpoint, milliseconds timeout,
                   std::shared_ptr<StoreServer> server)
    : Store(timeout),
      endpoint_(endpoint),
      server_(std::move(server)),
      socket_(connect(endpoint, timeout)) {}

/// The text after `kind` in the answer. Answers to abandoned requests are skipped.
std::string RunStore::ask(const std::string& request, const std::string& kind,
                          milliseconds timeout) {
  const std::lock_guard lock(mutex_);
  const auto number = ++last_request_;
  const auto begin = fmt::format("{} {}", number, kind);
  const auto deadline = Clock::now() + timeout;
  socket_->send(fmt::format("{} {}", number, request));
  for (;;) {
    for (std::string& line : socket_->receive()) {
      if (line.starts_with(begin)) return line.substr(begin.size());
    }
    if (socket_->has_ended()) throw std::runtime_error("the connection to the run's store closed");
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      throw std::runtime_error(
          fmt::format("no answer from the run's store within {} ms", timeout.count()));
    }
    const short events = socket_->has_to_send() ? POLLIN | POLLOUT : POLLIN;
    pollfd ready{socket_->descriptor(), events, 0};
    poll(&ready, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
  }
}

bool RunStore::ask_whether(const std::string& request) {
  return ask(request, "", timeout_) == "yes";
}

std::int64_t RunStore::ask_number(const std::string& request) {
  const auto text = ask(request, "number ", timeout_);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::runtime_error("the run's store answered " + text);
  }
  return number;
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

void RunStore::set_will(const std::string& key, const std::string& value) {
  ask(fmt::format("will {} {}", write_bytes(key), write_bytes(value)), "done", timeout_);
}

void RunStore::set_silence(std::chrono::seconds limit, const std::string& key,
                           const std::string& value) {
  ask(fmt::format("silence {} {} {}", limit.count(), write_bytes(key), write_bytes(value)), "done",
      timeout_);
}

c10::intrusive_ptr<c10d::Store> RunStore::clone() {
  return c10::make_intrusive<RunStore>(endpoint_, timeout_, server_);
}

}  // namespace dtool::trainer
