// One SSH session over libssh, used by coroutines on one thread: greeting, host key,
// authentication.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ssh/config/client_config.h"
#include "ssh/host_error.h"
#include "ssh/keys/agent.h"
#include "ssh/keys/identity.h"
#include "ssh/keys/known_hosts.h"
#include "ssh/machine/reactor.h"
#include "ssh/session/libssh.h"

namespace dtool::ssh {

class Session {
 public:
  /// Takes over `socket`, on which the server's greeting is coming, and closes it at the end.
  Session(Reactor& reactor, const Endpoint& endpoint, OwnedFd socket, KnownHosts& known_hosts);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Exchanges keys; the server's is not yet trusted. Throws HostError.
  asio::awaitable<void> exchange_keys(Deadline deadline);

  /// Throws HostError(host_key_unknown, …) unless the known_hosts files say that the server's key
  /// is this host's.
  void require_known_host(KnownHosts& known_hosts) const;

  /// The server's key, `ssh-ed25519 SHA256:…`.
  std::string host_key() const;

  /// Whether they still do. The files are read again only where they have changed since
  /// they last were, or so lately that a change could not be told.
  bool is_still_known(KnownHosts& known_hosts);

  /// Tries the identity files that the user named, then the agent, then the usual files; with
  /// IdentitiesOnly, of the agent's keys those alone that are in one of the files.
  /// Throws HostError(not_authenticated) saying what was tried, and why where the server ended it.
  asio::awaitable<void> authenticate(IdentityCache& identities, Deadline deadline);

  /// Calls `call` until it answers something other than `again`, waiting for the socket in between.
  /// Throws HostError: timed_out when `deadline` passes, connection_lost if the server ended it.
  asio::awaitable<int> repeat(std::function<int()> call, int again, Deadline deadline,
                              const char* file = __builtin_FILE(), int line = __builtin_LINE());

  /// From now on a server that says nothing for long, while somebody waits for it, is asked for a
  /// sign of life, and waiting throws HostError(connection_lost) if none comes. For connections
  /// through a jump host, whose socket does not notice that the server vanished.
  void watch_for_silence() { is_watched_ = true; }

  /// Takes in what the server says unasked while nobody waits for an answer: its questions after a
  /// sign of life, and its farewell.
  void hear();

  /// From now on it counts as lost, for whoever waits and for all later calls.
  void cut();

  /// Waits until libssh can go on: readable, or writable where bytes are still to be sent.
  asio::awaitable<Waiter::Outcome> wait(Deadline deadline, const char* file = __builtin_FILE(),
                                        int line = __builtin_LINE());

  /// Wakes whoever waits.
  void wake() { waiter_->wake(); }

  /// Packets that came so far.
  std::uint64_t packets() const { return received_.in_packets; }
  /// To be called after each libssh call that may read: what it took in may be what another
  /// coroutine waits for, and the socket will not tell of it again.
  void share_packets();

  bool has_unsent_bytes() const {
    return (ssh_get_poll_flags(handle_.get()) & SSH_WRITE_PENDING) != 0;
  }
  bool is_connected() const { return !is_silent_ && ssh_is_connected(handle_.get()) != 0; }
  /// libssh's words, and in them the server's, which anybody may be: one line.
  std::string last_error() const {
    std::string text = ssh_get_error(handle_.get());
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  }
  ssh_session handle() const { return handle_.get(); }
  int fd() const { return ssh_get_fd(handle_.get()); }
  const Endpoint& endpoint() const { return endpoint_; }

 private:
  Deadline end_of_patience();
  void on_silence();
  asio::awaitable<bool> try_key(ssh_key key, Deadline deadline);
  asio::awaitable<bool> try_agent(AgentOffer offer, std::vector<std::string>& tried,
                                  Deadline& deadline);
  asio::awaitable<bool> try_keys(IdentityCache& identities, std::vector<std::string>& tried,
                                 Deadline deadline);
  HostError not_let_in(const std::vector<std::string>& tried) const;

  Reactor& reactor_;
  Endpoint endpoint_;
  std::string known_hosts_stamp_;  ///< of the files in which the key was found; empty: look again
  ssh_counter_struct received_{};
  std::uint64_t shared_packets_ = 0;
  bool is_watched_ = false;
  bool is_silent_ = false;           ///< for so long that it is lost
  bool was_asked_ = false;           ///< since silent_since_
  std::uint64_t heard_packets_ = 0;  ///< up to silent_since_
  Clock::time_point silent_since_;
  Clock::time_point last_wait_;
  OwnedFd socket_;
  ino_t socket_inode_;
  SessionHandle handle_;
  std::unique_ptr<Waiter> waiter_;
};

}  // namespace dtool::ssh
