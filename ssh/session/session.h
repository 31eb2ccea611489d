// SPDX-License-Identifier: MIT
// One SSH session over libssh, used by coroutines on one thread: greeting, host key,
// authentication.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ssh/config/client_config.h"
#include "ssh/host_error.h"
#include "ssh/keys/identity.h"
#include "ssh/keys/known_hosts.h"
#include "ssh/keys/libssh.h"
#include "ssh/machine/reactor.h"
#include "ssh/session/agent.h"

namespace dtool::ssh {

/// A second number of the same descriptor: the event loop waits for each by its own. Throws
/// HostError.
OwnedFd copy_of(const OwnedFd& fd);

/// The setting that libssh cannot carry, though `ssh` does; or empty.
std::string refused_by_libssh(const Endpoint& endpoint);

/// The error for a login that the server ended. `reason` is libssh's, `tried` a list.
HostError ended_log_in(const std::string& user, std::string reason, const std::string& tried);

/// When a server that something waits for is asked for a sign of life, and when it counts as lost.
class ServerSilence {
 public:
  enum class Next { wait, ask, give_up };

  /// A wait begins, and so many packets came so far. Returns until when it may last.
  Deadline wait_begins(std::uint64_t packets, Clock::time_point now);
  void wait_ended(Clock::time_point now) { last_wait_ = now; }
  /// What to do after a wait that lasted until then.
  Next next(std::uint64_t packets);

 private:
  bool was_asked_ = false;           ///< the server was asked since silent_since_
  std::uint64_t heard_packets_ = 0;  ///< up to silent_since_
  Clock::time_point silent_since_;
  Clock::time_point last_wait_;
};

class Session {
 public:
  /// Takes ownership of `socket`, on which the server's greeting arrives.
  Session(Reactor& reactor, const Endpoint& endpoint, OwnedFd socket, KnownHosts& known_hosts);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Exchanges keys; the server's key is not checked yet. Throws HostError.
  asio::awaitable<void> exchange_keys(Deadline deadline);

  /// Throws HostError(host_key_unknown, …) unless the known_hosts files have the server's key for
  /// this host.
  void require_known_host(KnownHosts& known_hosts) const;

  /// The server's key, `ssh-ed25519 SHA256:…`.
  std::string host_key() const;

  /// Whether the known_hosts files still have it. A file is read again only if it has changed, or
  /// if its last change is too recent to tell.
  bool is_still_known(KnownHosts& known_hosts, std::time_t now = std::time(nullptr));

  /// Tries the identity files that the user named, then the agent, then the usual files. With
  /// IdentitiesOnly, only those keys of the agent are tried that are in one of the files. Throws
  /// HostError(not_authenticated) with the methods tried, and the reason if the server ended the
  /// login.
  asio::awaitable<void> authenticate(IdentityCache& identities, Deadline deadline);

  /// Repeats `call` until it returns something other than `again`, waiting for the socket in
  /// between. Throws HostError: timed_out when `deadline` passes, connection_lost if the server
  /// ended it.
  asio::awaitable<int> repeat(std::function<int()> call, int again, Deadline deadline,
                              const char* file = __builtin_FILE(), int line = __builtin_LINE());

  /// From now on a silent server is asked for a sign of life while something waits for it. If none
  /// comes, the wait throws HostError(connection_lost). For connections through a jump host, whose
  /// socket does not notice that the server vanished.
  void watch_for_silence() { is_watched_ = true; }

  /// Reads the server's messages while nothing waits for an answer: requests for a sign of life,
  /// and its disconnect.
  void hear();

  /// Marks the session as lost, for current waits and later calls.
  void cut();

  /// Waits until libssh can go on: readable, or writable where bytes are still to be sent.
  asio::awaitable<Waiter::Outcome> wait(Deadline deadline, const char* file = __builtin_FILE(),
                                        int line = __builtin_LINE());

  /// Wakes whatever waits.
  void wake() { waiter_->wake(); }

  /// Packets that came so far.
  std::uint64_t packets() const { return received_.in_packets; }
  /// Call it after each libssh call that may read: another coroutine may wait for those packets,
  /// and the socket will not become readable again for them.
  void share_packets();

  bool has_unsent_bytes() const {
    return (ssh_get_poll_flags(handle_.get()) & SSH_WRITE_PENDING) != 0;
  }
  bool is_connected() const { return !is_silent_ && ssh_is_connected(handle_.get()) != 0; }
  /// libssh's error text on one line. It may quote the server, so it is not trusted.
  std::string last_error() const {
    std::string text = ssh_get_error(handle_.get());
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  }
  ssh_session handle() const { return handle_.get(); }
  /// Ends the connection, for both sides.
  void shut_down() const;
  /// What a process must keep open that goes on with the session.
  std::array<int, 2> fds() const { return {socket_.get(), copy_.get()}; }
  const Endpoint& endpoint() const { return endpoint_; }

 private:
  void on_silence();
  asio::awaitable<bool> try_key(ssh_key key, Deadline deadline);
  asio::awaitable<bool> try_agent(AgentOffer offer, std::vector<std::string>& tried,
                                  Deadline& deadline);
  asio::awaitable<bool> try_keys(IdentityCache& identities, std::vector<std::string>& tried,
                                 Deadline deadline);
  HostError not_let_in(const std::vector<std::string>& tried) const;

  Reactor& reactor_;
  Endpoint endpoint_;
  /// The stamp of the files in which the key was found; empty: read them again.
  std::string known_hosts_stamp_;
  ssh_counter_struct received_{};
  std::uint64_t shared_packets_ = 0;
  bool is_watched_ = false;
  bool is_partly_in_ = false;  ///< the server took a key, and wants more
  bool is_silent_ = false;     ///< silent for so long that it counts as lost
  ServerSilence silence_;
  OwnedFd socket_;
  OwnedFd copy_;  ///< libssh's
  ino_t socket_inode_;
  SessionHandle handle_;
  std::unique_ptr<Waiter> waiter_;
};

}  // namespace dtool::ssh
