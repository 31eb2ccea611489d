// SPDX-License-Identifier: MIT
#include "trainer/launch/greeting.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include "killfiles/channel/sha256.h"
#include "trainer/launch/network.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// How long the other side may take for an answer: it may be a machine that is held up.
constexpr auto kAnswerPatience = std::chrono::seconds(20);
/// A crowded door disconnects some callers; they try again for this long.
constexpr auto kCrowdPatience = std::chrono::seconds(3);

/// The result of a greeting, or of a part of it.
enum class Heard { all, hung_up, nonsense };

void say(const host::Descriptor& socket, const std::string& bytes) {
  // It fits into what the kernel keeps for a connection that nothing was sent through.
  [[maybe_unused]] const auto sent = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

/// So many bytes, and not one beyond: the rest is for another reader.
Heard receive(const host::Descriptor& socket, std::size_t size, std::string& bytes) {
  bytes.clear();
  const auto deadline = Clock::now() + kAnswerPatience;
  while (bytes.size() < size) {
    char piece[host::kWelcomeSize];
    const auto got = recv(socket.get(), piece, std::min(sizeof piece, size - bytes.size()), 0);
    if (got > 0) bytes.append(piece, static_cast<std::size_t>(got));
    if (got > 0) continue;
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) return Heard::hung_up;
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return Heard::nonsense;
    pollfd readable{socket.get(), POLLIN, 0};
    poll(&readable, 1, static_cast<int>(left));
  }
  return Heard::all;
}

Heard greet(const host::Descriptor& socket, const std::string& token, int place,
            std::optional<host::Channel>& channel) {
  const std::string hello = host::make_hello(token, place);
  say(socket, hello);
  std::string answer;
  Heard heard = receive(socket, host::kWelcomeSize, answer);
  if (heard != Heard::all) return heard;
  if (!host::is_welcome(token, hello, answer)) return Heard::nonsense;
  channel.emplace(token, hello, answer, host::End::machine, kLongestFrame);
  say(socket, channel->seal(""));
  heard = receive(socket, host::kEmptyFrameSize, answer);
  if (heard != Heard::all) return heard;
  channel->add(answer);
  try {
    return channel->next() ? Heard::all : Heard::nonsense;
  } catch (const std::runtime_error&) {
    return Heard::nonsense;
  }
}

/// So that many that were hung up on do not come back at the same moment.
milliseconds some_pause() {
  thread_local std::minstd_rand random{std::random_device{}()};
  return milliseconds(20 + random() % 100);
}

}  // namespace

Call call_at(const Endpoint& endpoint, std::string_view door, int place, milliseconds patience,
             const RunToken& token) {
  const auto deadline = Clock::now() + patience;
  std::optional<Clock::time_point> crowd_ends;
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    host::Descriptor socket = connect_within(endpoint, std::max(left, milliseconds(0)));
    if (!socket.is_open()) {
      throw std::runtime_error(fmt::format("no process listens on {}", to_string(endpoint)));
    }
    std::optional<host::Channel> channel;
    const Heard heard = greet(socket, token.for_door(door), place, channel);
    if (heard == Heard::all) return {std::move(socket), *std::move(channel)};
    if (!crowd_ends) crowd_ends = Clock::now() + kCrowdPatience;
    if (heard == Heard::nonsense || Clock::now() >= *crowd_ends) {
      throw NotOfThisRun(fmt::format("what listens on {} is not of this run", to_string(endpoint)));
    }
    socket = host::Descriptor();
    std::this_thread::sleep_for(some_pause());
  }
}

namespace {

constexpr auto kVisit = std::chrono::seconds(10);
constexpr std::size_t kStrangers = 128;

/// A socket that listens; or a closed one, and errno.
host::Descriptor listen_with(int family, const sockaddr* address, socklen_t size,
                             bool both_protocols) {
  const int on = 1;
  const int six_only = both_protocols ? 0 : 1;
  host::Descriptor made(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.is_open()) return made;
  setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (family == AF_INET6)
    setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &six_only, sizeof six_only);
  if (bind(made.get(), address, size) == 0 && listen(made.get(), SOMAXCONN) == 0) return made;
  return host::Descriptor();
}

/// Both protocols, or IPv4 where the kernel has no IPv6.
host::Descriptor listen_everywhere(std::uint16_t port) {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  host::Descriptor both =
      listen_with(AF_INET6, reinterpret_cast<sockaddr*>(&six), sizeof six, true);
  if (both.is_open() || errno == EADDRINUSE || errno == EACCES) return both;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  return listen_with(AF_INET, reinterpret_cast<sockaddr*>(&four), sizeof four, false);
}

[[noreturn]] void fail() {
  throw std::system_error(errno, std::generic_category());
}

}  // namespace

std::vector<host::Descriptor> listen_at(const Endpoint& endpoint) {
  int error = 0;
  const bool is_name =
      endpoint.host != "localhost" && !resolve(endpoint, SOCK_STREAM, AI_NUMERICHOST, error);
  const auto found = require_addresses(endpoint, SOCK_STREAM);
  std::vector<host::Descriptor> open;
  bool is_reachable = false;
  for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
    host::Descriptor made = listen_with(each->ai_family, each->ai_addr, each->ai_addrlen, false);
    // Some addresses of a name may not belong to this machine, or not yet.
    if (!made.is_open() && (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT)) continue;
    if (!made.is_open()) fail();
    open.push_back(std::move(made));
    is_reachable = is_reachable || !is_loopback(numeric_address(each->ai_addr, each->ai_addrlen));
  }
  // /etc/hosts often has 127.0.1.1 for the machine's own name; and behind NAT others know a machine
  // by an address that it does not have.
  if (!open.empty() && (is_reachable || !is_name)) return open;
  open.clear();
  open.push_back(listen_everywhere(endpoint.port));
  if (!open.front().is_open()) fail();
  return open;
}

void say(host::Caller& caller, std::string_view body) {
  caller.wire.write(caller.channel.seal(body), kLongestFrame);
}

FrontDoor::FrontDoor(const Endpoint& endpoint, std::string_view name, std::size_t guests,
                     const RunToken& token)
    : door_(listen_at(endpoint),
            {.token = token.for_door(name),
             .longest = kLongestFrame,
             .most_guests = kStrangers + guests,
             .patience = kVisit},
            watch_) {}

std::vector<host::Caller> FrontDoor::take() {
  std::vector<host::Caller> callers;
  for (const int each : watch_.wait(std::chrono::milliseconds(0)))
    std::ranges::move(take(each), std::back_inserter(callers));
  turn();
  return callers;
}

// dtool writes the file into the state folder of each machine (cli/engines).

namespace {

constexpr std::size_t kShortest = 32;
constexpr std::size_t kLongest = 256;

UsageError wrong(const std::string& path, const std::string& why, const std::string& hint = "") {
  return UsageError(fmt::format("{}={}: {}", kTokenFileVariable, path, why), hint);
}

/// Reads a file that belongs to this user alone, or to the system.
std::string read_private_file(const std::string& path) {
  const host::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) throw wrong(path, std::strerror(errno));
  struct stat found {};
  char text[kLongest + 2];
  const bool known = fstat(file.get(), &found) == 0;
  const auto size = known && S_ISREG(found.st_mode) ? read(file.get(), text, sizeof text) : -1;
  if (size < 0) throw wrong(path, "this is no file that can be read");
  if (found.st_uid != geteuid() && found.st_uid != 0) {
    throw wrong(path, fmt::format("it belongs to user {}", found.st_uid));
  }
  if ((found.st_mode & 077) != 0) {
    throw wrong(path, "others may read or write it", "chmod 600 " + path);
  }
  return {text, static_cast<std::size_t>(size)};
}

}  // namespace

std::string RunToken::prove(std::initializer_list<std::string_view> words) const {
  std::string message;
  for (const auto word : words) message += fmt::format("{}:{}", word.size(), word);
  return host::to_hex(host::hmac_sha256(secret_, message));
}

RunToken read_run_token(const Environment& environment) {
  const auto path = environment(kTokenFileVariable);
  if (!path || path->empty()) return {};
  std::string secret = read_private_file(*path);
  if (!secret.empty() && secret.back() == '\n') secret.pop_back();
  if (secret.size() < kShortest || secret.size() > kLongest ||
      secret.find_first_not_of("0123456789abcdef") != secret.npos) {
    throw wrong(*path, fmt::format("it holds no token, which is {} to {} digits from 0-9a-f",
                                   kShortest, kLongest));
  }
  return RunToken(secret);
}

const RunToken& own_run_token() {
  static const RunToken token = read_run_token(process_environment);
  return token;
}

void make_own_run_token() {
  if (std::getenv(kTokenFileVariable) != nullptr) return;
  const int file = memfd_create("dtool-token", 0);
  const std::string secret = random_nonce() + random_nonce();
  if (file < 0 || fchmod(file, 0600) != 0 ||
      write(file, secret.data(), secret.size()) != static_cast<ssize_t>(secret.size())) {
    throw std::system_error(errno, std::generic_category(), "cannot keep a token");
  }
  setenv(kTokenFileVariable, fmt::format("/proc/self/fd/{}", file).c_str(), 1);
}

std::string random_nonce() {
  return host::to_hex(host::random_bytes());
}

}  // namespace dtool::trainer
