// SPDX-License-Identifier: MIT
#include "ssh/session/agent.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>
#include <tuple>
#include <utility>

#include "ssh/host_error.h"
#include "ssh/machine/encodings.h"
#include "ssh/machine/fd_bytes.h"
#include "ssh/machine/process.h"
#include "ssh/notice.h"
#include "ssh/session/session.h"

namespace dtool::ssh {
namespace {

// draft-miller-ssh-agent §6.1
constexpr char kFailure = 5;
constexpr char kRequestIdentities = 11;
constexpr char kIdentitiesAnswer = 12;
constexpr char kSignRequest = 13;
constexpr char kSignResponse = 14;

/// As OpenSSH's agent and libssh have it.
constexpr std::size_t kLongestMessage = 256 * 1024;

/// The public keys that an answer lists, as they go over the wire.
std::vector<std::string> keys_in(std::string_view answer) {
  std::vector<std::string> keys;
  if (answer.size() < 5 || answer.front() != kIdentitiesAnswer) return keys;
  // The kind and the number of keys are skipped; the keys' end tells their number as well.
  answer.remove_prefix(5);
  for (;;) {
    const auto key = take_string(answer);
    if (!key || !take_string(answer)) return keys;  // the second is a comment
    keys.emplace_back(*key);
  }
}

/// The connection to the agent, one question at a time. It is closed as soon as the log-in is over.
class AgentLink {
 public:
  AgentLink(Reactor& reactor, std::string path, std::string host)
      : reactor_(reactor), path_(std::move(path)), host_(std::move(host)) {}

  /// The agent's answer to `message`. Nothing if there is no agent, if it hangs up, or if it does
  /// not answer in time; why() then gives the reason. `purpose` says what the answer is needed for.
  asio::awaitable<std::optional<std::string>> ask(std::string message, std::string purpose);

  const std::string& why() const { return why_; }

 private:
  asio::awaitable<bool> connect();
  asio::awaitable<bool> read(std::string& bytes, std::size_t size);
  asio::awaitable<bool> wait(Waiter::For what);
  bool goes_on();

  Reactor& reactor_;
  std::string path_;
  std::string host_;
  std::string purpose_;
  std::string why_;
  OwnedFd socket_;
  std::unique_ptr<Waiter> waiter_;
  static AgentPatience::Times all_;
  AgentPatience patience_{all_};
};

AgentPatience::Times AgentLink::all_;

/// Whether to wait on; tells the user what for.
bool AgentLink::goes_on() {
  const auto next = patience_.next(Clock::now());
  if (next == AgentPatience::Next::give_up) {
    why_ = fmt::format("it did not answer within {} s", kAgentPatience.count());
    return false;
  }
  if (next == AgentPatience::Next::tell)
    notice(fmt::format("waiting for the ssh-agent to {}", purpose_));
  return true;
}

asio::awaitable<bool> AgentLink::wait(Waiter::For what) {
  const auto next_look = patience_.next_look(Clock::now());
  co_await waiter_->wait(what, next_look);
  co_return goes_on();
}

/// A socket with too many who wait for it answers EAGAIN and never becomes writable.
asio::awaitable<bool> AgentLink::connect() {
  for (;;) {
    socket_ = connect_unix(path_, SOCK_STREAM);
    if (socket_) break;
    if (errno != EAGAIN) {
      const bool is_long = errno == ENAMETOOLONG;
      why_ = is_long ? "the name of its socket is too long" : std::strerror(errno);
      co_return false;
    }
    if (!goes_on()) co_return false;
    co_await reactor_.sleep(std::chrono::milliseconds(50));
  }
  waiter_ = std::make_unique<Waiter>(reactor_, socket_.get());
  co_return true;
}

asio::awaitable<bool> AgentLink::read(std::string& bytes, std::size_t size) {
  bytes.resize(size);
  std::size_t at = 0;
  while (at < size) {
    const ssize_t count = ::recv(socket_.get(), bytes.data() + at, size - at, MSG_DONTWAIT);
    if (count > 0) {
      at += static_cast<std::size_t>(count);
    } else if (count < 0 && errno == EAGAIN) {
      const bool goes_on = co_await wait(Waiter::For::readable);
      if (!goes_on) co_return false;
    } else {
      why_ = "it closed the connection";
      co_return false;
    }
  }
  co_return true;
}

asio::awaitable<std::optional<std::string>> AgentLink::ask(std::string message,
                                                           std::string purpose) {
  purpose_ = std::move(purpose);
  patience_.asked(Clock::now());
  if (!socket_) {
    const bool is_connected = co_await connect();
    if (!is_connected) co_return std::nullopt;
  }
  const std::string request = ssh_string(message);
  std::string_view rest = request;
  while (!rest.empty()) {
    const ssize_t count = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count > 0) {
      rest.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      const bool goes_on = co_await wait(Waiter::For::writable);
      if (!goes_on) co_return std::nullopt;
    } else {
      why_ = "it closed the connection";
      co_return std::nullopt;
    }
  }
  std::string answer;
  const bool has_size = co_await read(answer, 4);
  if (!has_size) co_return std::nullopt;
  std::string_view head = answer;
  const std::size_t size = take_number(head).value_or(0);
  if (size == 0 || size > kLongestMessage) {
    why_ = "its answer has an impossible length";
    co_return std::nullopt;
  }
  const bool is_whole = co_await read(answer, size);
  if (!is_whole) co_return std::nullopt;
  patience_.answered(Clock::now());
  co_return answer;
}

/// libssh takes this for the agent: a socket on which all answers are already present, followed by
/// the end, so that no call of libssh can wait. libssh's questions can be read afterwards.
class PreparedAgent {
 public:
  PreparedAgent(ssh_session session, const std::vector<std::string>& answers) : session_(session) {
    std::tie(ours_, libsshs_) = make_sockets(SOCK_STREAM | SOCK_NONBLOCK, Failure::unreachable);
    for (const std::string& answer : answers) {
      const std::string bytes = ssh_string(answer);
      [[maybe_unused]] const auto sent =
          ::send(ours_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);  // else it meets the end
    }
    ::shutdown(ours_.get(), SHUT_WR);
    ssh_set_agent_socket(session_, libsshs_.get());
  }
  ~PreparedAgent() { ssh_set_agent_socket(session_, SSH_INVALID_SOCKET); }
  PreparedAgent(const PreparedAgent&) = delete;
  PreparedAgent& operator=(const PreparedAgent&) = delete;

  /// libssh's last question, if it asks for a signature.
  std::optional<std::string> asked_signature() const {
    std::string bytes(kLongestMessage, '\0');
    const ssize_t count = ::recv(ours_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    std::string_view rest(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    std::string_view last;
    while (const auto request = take_string(rest)) last = *request;
    if (last.empty() || last.front() != kSignRequest) return std::nullopt;
    return std::string(last);
  }

 private:
  ssh_session session_;
  OwnedFd ours_;
  OwnedFd libsshs_;
};

/// One call of libssh's own login with the agent, as far as `answers` last. Returns its result and,
/// in `signature`, the data to be signed.
asio::awaitable<int> offer_key(Session& session, std::vector<std::string> answers,
                               std::optional<std::string>& signature, Deadline deadline) {
  const PreparedAgent agent(session.handle(), answers);
  std::function<int()> call = [&session] { return ssh_userauth_agent(session.handle(), nullptr); };
  const int rc = co_await session.repeat(call, SSH_AUTH_AGAIN, deadline);
  signature = agent.asked_signature();
  co_return rc;
}

constexpr auto kTellAfter = std::chrono::seconds(1);
/// Many hosts wait for one agent, and one line says so.
constexpr auto kTellAgainAfter = std::chrono::seconds(30);

}  // namespace

AgentPatience::Next AgentPatience::next(Clock::time_point now) {
  if (now >= std::max(asked_, all_.answered) + kAgentPatience) return Next::give_up;
  if (now < asked_ + kTellAfter || now < all_.told + kTellAgainAfter) return Next::wait;
  all_.told = now;
  return Next::tell;
}

Clock::time_point AgentPatience::next_look(Clock::time_point now) const {
  return (now < asked_ + kTellAfter ? asked_ : now) + kTellAfter;
}

/// libssh asks its agent and waits. So each key is offered twice, and the second time only where
/// the server would take it: at first libssh is told that the signature failed, and what it wanted
/// signed is kept; the agent is asked for that in the event loop; and then the same words meet the
/// signature that is there. A round trip more, in a log-in with an agent.
asio::awaitable<AgentLogIn> log_in_with_agent(Reactor& reactor, Session& session, std::string path,
                                              AgentOffer offer, Deadline deadline) {
  AgentLogIn log_in{false, {}, deadline};
  const std::string host = session.endpoint().named;
  AgentLink agent(reactor, path, host);
  const std::string list_request(1, kRequestIdentities);
  const auto began = Clock::now();
  const std::string to_list = "name its keys";
  const auto list = co_await agent.ask(list_request, to_list);
  log_in.deadline += Clock::now() - began;
  if (!list) {
    log_in.problem = agent.why();
    co_return log_in;
  }
  for (const std::string& key : keys_in(*list)) {
    const std::string text = to_base64(key);
    if (offer.tried.contains(text) || (offer.only && !offer.only->contains(text))) continue;
    const std::string one_key =
        std::string(1, kIdentitiesAnswer) + ssh_number(1) + ssh_string(key) + ssh_string("");
    std::vector<std::string> answers = {one_key, std::string(1, kFailure)};
    std::optional<std::string> request;
    int rc = co_await offer_key(session, answers, request, log_in.deadline);
    if (request) {
      const auto asked_at = Clock::now();
      const std::string to_sign = fmt::format("sign for {}", host);
      const auto answer = co_await agent.ask(*request, to_sign);
      log_in.deadline += Clock::now() - asked_at;
      if (!answer) {
        log_in.problem = agent.why();
        co_return log_in;
      }
      if (answer->front() != kSignResponse) {
        log_in.problem = "it refused to sign";
        continue;
      }
      answers.back() = *answer;
      rc = co_await offer_key(session, answers, request, log_in.deadline);
    }
    log_in.is_in = rc == SSH_AUTH_SUCCESS;
    if (log_in.is_in || !session.is_connected()) co_return log_in;
  }
  co_return log_in;
}

}  // namespace dtool::ssh
