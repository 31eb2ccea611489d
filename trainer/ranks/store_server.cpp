// SPDX-License-Identifier: MIT
#include "trainer/ranks/store_server.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "killfiles/channel/sha256.h"
#include "ssh/wire/words.h"
#include "trainer/launch/greeting.h"

namespace dtool::trainer {
namespace {

int digit(char each) {
  if (each >= '0' && each <= '9') return each - '0';
  if (each >= 'a' && each <= 'f') return each - 'a' + 10;
  throw std::invalid_argument("no hexadecimal digit");
}

std::int64_t read_number(std::string_view text) {
  const auto number = host::parse_number<std::int64_t>(text);
  if (!number) throw std::invalid_argument("no number");
  return *number;
}

using Clock = std::chrono::steady_clock;

/// How often the server looks for silent clients.
constexpr auto kBetweenLooks = std::chrono::seconds(1);
/// The most silence that one look adds: while this process or its machine was suspended, nobody
/// could be heard.
constexpr auto kLongestGap = std::chrono::seconds(2);

constexpr std::size_t kPiece = std::size_t{64} << 10;

struct Request {
  int descriptor = -1;
  std::uint64_t client = 0;  ///< the caller's number, which is not used again, as the descriptor is
  std::int64_t number = 0;
  std::string verb;
  std::vector<std::string> words;  ///< the words as they came

  std::string name() const { return read_bytes(words.front()); }
};

Request read_request(const host::Caller& client, std::string_view line) {
  std::vector<std::string> words;
  for (std::size_t end = 0; end != line.npos;) {
    end = line.find(' ');
    words.emplace_back(line.substr(0, end));
    if (end != line.npos) line.remove_prefix(end + 1);
  }
  if (words.size() < 2) throw std::invalid_argument("no request");
  Request request{client.wire.descriptor(), client.number, read_number(words[0]), words[1], {}};
  request.words.assign(words.begin() + 2, words.end());
  const auto count = request.words.size();
  const bool fits = request.verb == "count"                             ? count == 0
                    : request.verb == "get" || request.verb == "delete" ? count == 1
                    : request.verb == "set" || request.verb == "add"    ? count == 2
                    : request.verb == "swap"                            ? count == 3
                    : request.verb == "will"                            ? count == 4
                    : request.verb == "check" || request.verb == "wait" ? count >= 1
                                                                        : false;
  if (!fits) throw std::invalid_argument("no request");
  // These may wait, and are then performed while another client is listened to.
  if (request.verb == "get" || request.verb == "wait") {
    for (const std::string& each : request.words) read_bytes(each);
  }
  return request;
}

}  // namespace

std::string write_bytes(std::string_view bytes) {
  return "x" + host::to_hex(bytes);
}

std::string read_bytes(std::string_view text) {
  if (text.size() % 2 != 1 || text.front() != 'x') throw std::invalid_argument("no bytes");
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 1; i < text.size(); i += 2) {
    bytes += static_cast<char>(16 * digit(text[i]) + digit(text[i + 1]));
  }
  return bytes;
}

class StoreServer::Serving {
 public:
  Serving(const Endpoint& endpoint, std::size_t clients)
      : end_(eventfd(0, EFD_CLOEXEC)), door_(endpoint, kStoreDoor, clients) {
    door_.watch().add(end_.get());
    thread_ = std::thread([this] { serve(); });
  }
  ~Serving() {
    eventfd_write(end_.get(), 1);
    thread_.join();
  }

 private:
  struct Client {
    host::Caller caller;
    std::string name = {}, if_closed = {}, if_silent = {};  ///< its will
    Clock::duration silence_limit{};
    Clock::duration silence{};  ///< the time since it was heard last
  };

  void serve();
  void let_in(int ready);
  void listen_to(int descriptor);
  void drop(int descriptor);
  void leave(const std::string& name, const std::string& value);
  void note_silence();
  void perform(const Request& request);
  void answer(const Request& request, std::string_view text);
  void put(const std::string& name, std::string value);
  bool must_wait(const Request& request);

  host::Descriptor end_;
  FrontDoor door_;
  Clock::time_point looked_at_ = Clock::now();  ///< the time of the last look for silent clients
  std::unordered_map<int, Client> clients_;     ///< the clients by descriptor
  std::unordered_map<std::string, std::string> values_;
  /// The requests that wait for this name (the key) to come.
  std::unordered_map<std::string, std::vector<Request>> waiting_;
  std::thread thread_;  ///< last, so that it starts when the others are there
};

void StoreServer::Serving::serve() {
  for (;;) {
    for (const int ready : door_.watch().wait(std::chrono::seconds(1))) {
      if (ready == end_.get()) return;
      if (clients_.contains(ready)) {
        listen_to(ready);
      } else {
        let_in(ready);
      }
    }
    door_.turn();  // strangers leave by the clock as well
    note_silence();
  }
}

void StoreServer::Serving::let_in(int ready) {
  for (host::Caller& caller : door_.take(ready)) {
    say(caller, "");
    const int descriptor = caller.wire.descriptor();
    clients_.emplace(descriptor, Client{std::move(caller)});
  }
}

void StoreServer::Serving::listen_to(int descriptor) {
  Client& client = clients_.at(descriptor);
  client.silence = {};
  std::string bytes;
  const auto read = client.caller.wire.read(bytes, kPiece);
  client.caller.wire.flush();  // where that fails, reading will
  client.caller.channel.add(bytes);
  try {
    while (const auto line = client.caller.channel.next())
      perform(read_request(client.caller, *line));
  } catch (const std::exception&) {
    drop(descriptor);  // no client of ours says such things
    return;
  }
  if (read == host::Wire::Read::closed) drop(descriptor);
}

void StoreServer::Serving::drop(int descriptor) {
  const auto gone = clients_.extract(descriptor);
  const Client& client = gone.mapped();
  leave(client.name, client.if_closed);
}

/// What a client leaves to the others.
void StoreServer::Serving::leave(const std::string& name, const std::string& value) {
  if (!value.empty() && !values_.contains(name)) put(name, value);
}

void StoreServer::Serving::note_silence() {
  const auto now = Clock::now();
  if (now - looked_at_ < kBetweenLooks) return;
  const auto passed = std::min<Clock::duration>(now - looked_at_, kLongestGap);
  looked_at_ = now;
  std::vector<std::pair<std::string, std::string>> told;
  for (auto& [descriptor, client] : clients_) {
    client.silence += passed;
    if (client.silence <= client.silence_limit) continue;
    told.emplace_back(client.name, std::exchange(client.if_silent, ""));
  }
  for (const auto& [name, value] : told) leave(name, value);
}

void StoreServer::Serving::answer(const Request& request, std::string_view text) {
  const auto found = clients_.find(request.descriptor);
  if (found == clients_.end() || found->second.caller.number != request.client) return;
  say(found->second.caller, fmt::format("{} {}", request.number, text));
}

void StoreServer::Serving::put(const std::string& name, std::string value) {
  values_[name] = std::move(value);
  const auto found = waiting_.find(name);
  if (found == waiting_.end()) return;
  const auto requests = std::move(found->second);
  waiting_.erase(found);
  for (const Request& each : requests) perform(each);
}

bool StoreServer::Serving::must_wait(const Request& request) {
  for (const std::string& each : request.words) {
    const auto name = read_bytes(each);
    if (values_.contains(name)) continue;
    waiting_[name].push_back(request);
    return true;
  }
  return false;
}

void StoreServer::Serving::perform(const Request& request) {
  if (request.verb == "count") {
    answer(request, fmt::format("number {}", values_.size()));
  } else if (request.verb == "set") {
    put(request.name(), read_bytes(request.words[1]));
    answer(request, "done");
  } else if (request.verb == "get") {
    if (!must_wait(request)) answer(request, "value " + write_bytes(values_[request.name()]));
  } else if (request.verb == "add") {
    const auto name = request.name();
    const auto found = values_.find(name);
    const auto before = found == values_.end() ? 0 : read_number(found->second);
    std::int64_t sum = 0;
    if (__builtin_add_overflow(before, read_number(request.words[1]), &sum)) {
      throw std::invalid_argument("no number");
    }
    put(name, fmt::format("{}", sum));
    answer(request, fmt::format("number {}", sum));
  } else if (request.verb == "check") {
    bool are_there = true;
    for (const std::string& each : request.words) {
      are_there = are_there && values_.contains(read_bytes(each));
    }
    answer(request, are_there ? "yes" : "no");
  } else if (request.verb == "wait") {
    if (!must_wait(request)) answer(request, "done");
  } else if (request.verb == "swap") {
    const auto name = request.name();
    const auto expected = read_bytes(request.words[1]);
    const auto found = values_.find(name);
    const bool is_expected = found == values_.end() ? expected.empty() : found->second == expected;
    if (is_expected) put(name, read_bytes(request.words[2]));
    const auto now = values_.find(name);
    answer(request, "value " + write_bytes(now == values_.end() ? expected : now->second));
  } else if (request.verb == "will") {
    const auto limit = read_number(request.words[2]);
    if (limit < 0 || limit > kLongestSilence.count()) throw std::invalid_argument("no time");
    Client& client = clients_.at(request.descriptor);
    client.name = request.name();
    client.if_closed = read_bytes(request.words[1]);
    client.silence_limit = std::chrono::seconds(limit);
    client.if_silent = read_bytes(request.words[3]);
    answer(request, "done");
  } else if (request.verb == "delete") {
    answer(request, values_.erase(request.name()) > 0 ? "yes" : "no");
  }
}

StoreServer::StoreServer(const Endpoint& endpoint, std::size_t clients)
    : serving_(std::make_unique<Serving>(endpoint, clients)) {}

StoreServer::~StoreServer() = default;

}  // namespace dtool::trainer
