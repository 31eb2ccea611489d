// SPDX-License-Identifier: MIT
#include "ssh/session/session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <libssh/server.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "ssh/host_error.h"
#include "ssh/machine/files.h"
#include "ssh/wire/words.h"

namespace dtool::ssh {
namespace {

/// As long as a socket without a jump host takes to notice.
constexpr auto kAskAfter = std::chrono::seconds(15);
constexpr auto kLostAfter = std::chrono::seconds(30);
/// During a longer pause between two waits, this side was not listening.
constexpr auto kStillListening = std::chrono::seconds(1);

void set_text(ssh_session session, ssh_options_e option, const std::string& value) {
  if (value.empty()) return;
  if (ssh_options_set(session, option, value.c_str()) < 0) {
    throw HostError(Failure::unreachable,
                    fmt::format("libssh refused {}: {}", value, ssh_get_error(session)));
  }
}

/// Whether libssh has taken a setting of Endpoint::encryption. It leaves out the algorithms of a
/// list that it does not know, which changes nothing about the others, but knows no patterns and
/// not all of ssh's ways to change its own list.
bool takes(ssh_session session, const std::string& keyword, const std::string& value) {
  const auto set = [session, &value](ssh_options_e option) {
    return ssh_options_set(session, option, value.c_str()) == SSH_OK;
  };
  if (keyword == "requiredrsasize") {
    const auto size = host::parse_number<int>(value);
    return size && ssh_options_set(session, SSH_OPTIONS_RSA_MIN_SIZE, &*size) == SSH_OK;
  }
  if (value.find_first_of("+-^*?!") == 0 || value.find_first_of("*?!") != value.npos) return false;
  if (keyword == "ciphers") return set(SSH_OPTIONS_CIPHERS_C_S) && set(SSH_OPTIONS_CIPHERS_S_C);
  if (keyword == "macs") return set(SSH_OPTIONS_HMAC_C_S) && set(SSH_OPTIONS_HMAC_S_C);
  return set(keyword == "kexalgorithms" ? SSH_OPTIONS_KEY_EXCHANGE
                                        : SSH_OPTIONS_PUBLICKEY_ACCEPTED_TYPES);
}

/// 0 if it is closed.
ino_t inode_of(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
}

SessionHandle make_handle(const Endpoint& endpoint, int fd) {
  SessionHandle handle(ssh_new());
  if (handle == nullptr) throw std::bad_alloc();
  ssh_session session = handle.get();
  const int process_config = 0;
  ssh_options_set(session, SSH_OPTIONS_PROCESS_CONFIG, &process_config);
  set_text(session, SSH_OPTIONS_SSH_DIR, (home_folder() / ".ssh").string());
  set_text(session, SSH_OPTIONS_HOST, endpoint.key_name);
  set_text(session, SSH_OPTIONS_USER, endpoint.user);
  // known_hosts.h judges keys; libssh would give up at a line that it does not know.
  set_text(session, SSH_OPTIONS_KNOWNHOSTS, "/dev/null");
  set_text(session, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
  const unsigned int port = endpoint.port;
  ssh_options_set(session, SSH_OPTIONS_PORT, &port);
  ssh_options_set(session, SSH_OPTIONS_FD, &fd);
  for (const auto& [keyword, value] : endpoint.encryption) takes(session, keyword, value);
  ssh_set_blocking(session, 0);
  return handle;
}

}  // namespace

OwnedFd copy_of(const OwnedFd& fd) {
  OwnedFd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy)
    throw HostError(Failure::unreachable, fmt::format("cannot connect: {}", std::strerror(errno)));
  return copy;
}

std::string refused_by_libssh(const Endpoint& endpoint) {
  const SessionHandle handle(ssh_new());
  if (handle == nullptr) throw std::bad_alloc();
  const bool takes_user = endpoint.user.empty() || ssh_options_set(handle.get(), SSH_OPTIONS_USER,
                                                                   endpoint.user.c_str()) == SSH_OK;
  if (!takes_user) return "User " + endpoint.user;
  for (const auto& [keyword, value] : endpoint.encryption)
    if (!takes(handle.get(), keyword, value)) return fmt::format("{} {}", keyword, value);
  return "";
}

HostError ended_log_in(const std::string& user, std::string reason, const std::string& tried) {
  const std::string_view mark = "Received SSH_MSG_DISCONNECT: 2:";  // libssh's words before it
  if (reason.starts_with(mark)) reason.erase(0, mark.size());
  const bool were_too_many = reason.find("Too many authentication failures") != reason.npos;
  return {Failure::not_authenticated,
          fmt::format("user {} was not let in: the server ended the log-in: {}; tried {}", user,
                      reason, tried),
          were_too_many ? "the server allows only a few keys: name the right one by "
                          "IdentityFile, with IdentitiesOnly yes, in ~/.ssh/config"
                        : ""};
}

Session::Session(Reactor& reactor, const Endpoint& endpoint, OwnedFd socket,
                 KnownHosts& known_hosts)
    : reactor_(reactor),
      endpoint_(endpoint),
      socket_(std::move(socket)),
      copy_(copy_of(socket_)),
      socket_inode_(inode_of(socket_.get())),
      handle_(make_handle(endpoint, copy_.get())) {
  set_text(handle_.get(), SSH_OPTIONS_HOSTKEYS,
           fmt::format("{}", fmt::join(key_algorithms(known_hosts.types_of(endpoint_)), ",")));
  ssh_set_counters(handle_.get(), nullptr, &received_);
  waiter_ = std::make_unique<Waiter>(reactor_, socket_.get());
}

/// libssh 0.10 takes leave of a server and leaves open a socket that it was given. The farewell is
/// lost where bytes before it are still to be sent; then only the socket's end tells the server. On
/// some errors libssh closes its socket, and the kernel reuses the number. If dtool then stopped
/// waiting for that number, its new owner would wait for ever. So libssh has a copy.
Session::~Session() {
  handle_.reset();
  if (inode_of(copy_.get()) != socket_inode_) copy_.release();
}

void Session::shut_down() const {
  ::shutdown(socket_.get(), SHUT_RDWR);
}

void Session::share_packets() {
  if (std::exchange(shared_packets_, packets()) != packets()) wake();
}

asio::awaitable<Waiter::Outcome> Session::wait(Deadline deadline, const char* file, int line) {
  const auto direction = has_unsent_bytes() ? Waiter::For::writable : Waiter::For::readable;
  const Deadline patience = silence_.wait_begins(packets(), Clock::now());
  const Deadline soon = is_watched_ ? std::min(deadline, patience) : deadline;
  const auto outcome = co_await waiter_->wait(direction, soon, file, line);
  silence_.wait_ended(Clock::now());
  if (outcome == Waiter::Outcome::ready || soon == deadline) co_return outcome;
  on_silence();
  co_return Waiter::Outcome::ready;  // the same answer as for any spurious wake-up
}

Deadline ServerSilence::wait_begins(std::uint64_t packets, Clock::time_point now) {
  const bool has_spoken = std::exchange(heard_packets_, packets) != packets;
  if (has_spoken || now - last_wait_ > kStillListening) {
    silent_since_ = now;
    was_asked_ = false;
  }
  return silent_since_ + (was_asked_ ? kLostAfter : kAskAfter);
}

ServerSilence::Next ServerSilence::next(std::uint64_t packets) {
  if (packets != heard_packets_) return Next::wait;
  if (last_wait_ - silent_since_ >= kLostAfter) return Next::give_up;
  return std::exchange(was_asked_, true) ? Next::wait : Next::ask;
}

void Session::on_silence() {
  const auto next = silence_.next(packets());
  if (next == ServerSilence::Next::give_up) {
    is_silent_ = true;
    throw HostError(
        Failure::connection_lost,
        fmt::format("the connection was lost: no sign of life for {} s", kLostAfter.count()));
  }
  if (next == ServerSilence::Next::wait) return;
  // The first call may only take in that the server refused the last question, as servers do.
  ssh_send_keepalive(handle_.get());
  ssh_send_keepalive(handle_.get());
  share_packets();
}

void Session::hear() {
  ssh_execute_message_callbacks(handle_.get());
  share_packets();
}

void Session::cut() {
  is_silent_ = true;
  wake();
}

asio::awaitable<int> Session::repeat(std::function<int()> call, int again, Deadline deadline,
                                     const char* file, int line) {
  for (;;) {
    const int rc = call();
    share_packets();
    if (rc != again) co_return rc;
    // It may have taken in the server's farewell just now; then there is no socket to wait for.
    if (!is_connected()) throw HostError(Failure::connection_lost, last_error());
    const auto outcome = co_await wait(deadline, file, line);
    if (outcome == Waiter::Outcome::deadline_passed) {
      throw HostError(Failure::timed_out, "no answer in time");
    }
  }
}

asio::awaitable<void> Session::exchange_keys(Deadline deadline) {
  std::function<int()> call = [this] { return ssh_connect(handle_.get()); };
  int rc = SSH_ERROR;
  try {
    rc = co_await repeat(call, SSH_AGAIN, deadline);
  } catch (const HostError& error) {
    if (error.failure() == Failure::timed_out) {
      throw HostError(Failure::connect_timed_out, "the SSH handshake did not end in time",
                      "--connect_timeout sets how long dtool waits");
    }
    if (is_connected() || reactor_.abandoned()) throw;
  }
  if (rc != SSH_OK) {
    std::string why = last_error();
    if (why == "Socket error: Success") why = "the server closed the connection";  // an end of file
    throw HostError(Failure::unreachable, fmt::format("the SSH handshake failed: {}", why));
  }
}

asio::awaitable<bool> Session::try_key(ssh_key key, Deadline deadline) {
  std::function<int()> call = [this, key] {
    return ssh_userauth_publickey(handle_.get(), nullptr, key);
  };
  const int rc = co_await repeat(call, SSH_AUTH_AGAIN, deadline);
  is_partly_in_ = is_partly_in_ || rc == SSH_AUTH_PARTIAL;
  co_return rc == SSH_AUTH_SUCCESS;
}

asio::awaitable<bool> Session::try_agent(AgentOffer offer, std::vector<std::string>& tried,
                                         Deadline& deadline) {
  tried.emplace_back("the agent");
  const std::string path = endpoint_.identity_agent;
  const AgentLogIn agent =
      co_await log_in_with_agent(reactor_, *this, path, std::move(offer), deadline);
  deadline = agent.deadline;
  if (!agent.problem.empty()) tried.back() = fmt::format("the agent ({})", agent.problem);
  co_return agent.is_in;
}

asio::awaitable<bool> Session::try_keys(IdentityCache& identities, std::vector<std::string>& tried,
                                        Deadline deadline) {
  std::vector<std::filesystem::path> files = endpoint_.identity_files;
  const std::size_t named = files.size();
  if (named == 0) files = usual_identities();
  const std::vector<std::filesystem::path>& certificates = endpoint_.certificate_files;
  const bool only_named = endpoint_.only_named_identities;
  const bool has_agent = !endpoint_.identity_agent.empty();
  const bool agent_is_first = has_agent && named == 0 && certificates.empty() && !only_named;
  AgentOffer offer;
  if (agent_is_first) {
    const bool is_in = co_await try_agent(offer, tried, deadline);
    if (is_in) co_return true;
    if (!is_connected()) co_return false;
  }
  const std::vector<Credential> credentials = identities.credentials(files, certificates);
  for (const Credential& each : credentials) {
    const std::filesystem::path& file = each.file;
    const Identity& identity = *each.identity;
    if (identity.key == nullptr) {
      const bool is_named = named > 0 || !certificates.empty();
      const bool tell = is_named || identity.problem != "not there";
      if (tell) tried.push_back(fmt::format("{} ({})", file.string(), identity.problem));
      continue;
    }
    tried.push_back(file.string());
    offer.tried.insert(public_text(identity.key.get()));
    const bool is_in = co_await try_key(identity.key.get(), deadline);
    if (is_in) co_return true;
    if (!is_connected()) co_return false;
  }
  if (!has_agent || agent_is_first) co_return false;
  // An encrypted file that the user named is often in the agent.
  if (only_named) {
    files.insert(files.end(), certificates.begin(), certificates.end());
    offer.only = public_keys(files);
  }
  co_return co_await try_agent(std::move(offer), tried, deadline);
}

HostError Session::not_let_in(const std::vector<std::string>& tried) const {
  const std::string list = tried.empty() ? std::string("no key, because none was found")
                                         : fmt::format("{}", fmt::join(tried, ", "));
  if (is_connected() && is_partly_in_) {
    return {Failure::not_authenticated,
            fmt::format("user {} was not let in: the server took a key, and asks for a second "
                        "factor",
                        endpoint_.user)};
  }
  if (is_connected()) {
    return {Failure::not_authenticated,
            fmt::format("user {} was not let in; tried {}", endpoint_.user, list),
            "is this the right user, and is your public key in the host's ~/.ssh/authorized_keys?"};
  }
  return ended_log_in(endpoint_.user, last_error(), list);
}

asio::awaitable<void> Session::authenticate(IdentityCache& identities, Deadline deadline) {
  std::vector<std::string> tried;
  bool is_in = false;
  try {
    is_in = co_await try_keys(identities, tried, deadline);
  } catch (const HostError& error) {
    const bool server_ended_it = error.failure() == Failure::connection_lost && !is_connected();
    if (!server_ended_it || reactor_.abandoned()) throw;
  }
  if (!is_in) throw not_let_in(tried);
}

}  // namespace dtool::ssh
