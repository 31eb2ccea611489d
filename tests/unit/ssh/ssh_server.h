// SPDX-License-Identifier: MIT
// An SSH server on loopback for tests, on a thread of its own. It lets in those keys that it is
// told to, and its commands do what their words say.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <libssh/server.h>
#include <sys/socket.h>

#include <atomic>
#include <list>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ssh/keys/identity.h"
#include "ssh/machine/files.h"

namespace dtool::tests {

inline ssh::KeyHandle new_key() {
  ssh_key key = nullptr;
  if (::ssh_pki_generate(SSH_KEYTYPE_ED25519, 0, &key) != SSH_OK)
    throw std::runtime_error("libssh makes no key");
  return ssh::KeyHandle(key);
}

/// What the server does with its clients.
struct ServerRules {
  std::set<std::string> let_in = {};   ///< keys, each as ssh::public_text
  std::set<std::string> half_in = {};  ///< keys beside which a second factor is needed
  int most_refusals = 100;             ///< after so many refused keys it hangs up
  int refused_sessions = 0;            ///< so many requests for a session are refused first
  bool forwards = true;                ///< whether it is a jump host, to places on loopback
  bool answers_forwards = true;        ///< whether it says yes or no to one
  bool runs_scripts = true;            ///< whether it begins scripts
};

/// Serves one client after another. A command is a list of steps, separated by `; `:
///   say TEXT, complain TEXT   a line of output, or of errors
///   fill N                    N bytes of output
///   count                     reads to the end of input, and says the number of bytes
///   exit N, die SIGNAL        the end
///   status N                  the exit code, and the output stays open
///   vanish                    the end without an exit code
///   drop                      the server hangs up
///   hang                      goes on after a signal KILL, or a script
/// A command `refuse` is not begun. A script (`exec bash …`) reads to the end of its input, ends
/// the waiting of others, and ends well.
class SshServer {
 public:
  explicit SshServer(ServerRules rules = {}) : rules_(std::move(rules)), bind_(::ssh_bind_new()) {
    ssh::KeyHandle key = new_key();
    key_ = "ssh-ed25519 " + ssh::public_text(key.get());
    const bool is_configured = false;
    ::ssh_bind_options_set(bind_, SSH_BIND_OPTIONS_PROCESS_CONFIG, &is_configured);
    if (::ssh_bind_options_set(bind_, SSH_BIND_OPTIONS_IMPORT_KEY, key.release()) != SSH_OK)
      throw std::runtime_error("libssh makes no server");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    auto* place = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    if (::bind(listener_.get(), place, size) != 0 || ::listen(listener_.get(), 4) != 0 ||
        ::getsockname(listener_.get(), place, &size) != 0) {
      throw std::runtime_error("no server on loopback");
    }
    port_ = ::ntohs(address.sin_port);
    thread_ = std::thread([this] { accept_clients(); });
  }
  SshServer(const SshServer&) = delete;
  SshServer& operator=(const SshServer&) = delete;
  ~SshServer() {
    is_over_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    ::ssh_bind_free(bind_);
  }

  int port() const { return port_; }
  /// `ssh-ed25519 AAAA…`
  const std::string& key() const { return key_; }
  /// What clients asked for, in order: `offer …`, `key …`, `session`, `exec …`, `signal …`,
  /// `input …`, `forward …`.
  std::vector<std::string> heard() const {
    const std::lock_guard lock(mutex_);
    return heard_;
  }

 private:
  struct Command {
    SshServer* server;
    ssh_channel channel;
    ssh_channel_callbacks_struct callbacks{};
    std::vector<std::string> steps = {};
    std::string input = {};
    bool has_all_input = false;
    bool was_killed = false;
  };
  struct Forward {
    ssh_channel channel;
    ssh::OwnedFd socket;
    ssh_channel_callbacks_struct callbacks{};
  };

  void note(std::string text) {
    const std::lock_guard lock(mutex_);
    heard_.push_back(std::move(text));
  }

  void accept_clients() {
    for (;;) {
      const int client = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (client == -1) return;
      session_ = ::ssh_new();
      if (::ssh_bind_accept_fd(bind_, session_, client) == SSH_OK) serve();
      commands_.clear();
      forwards_.clear();
      ::ssh_disconnect(session_);
      ::ssh_free(session_);
    }
  }

  void serve() {
    ssh_server_callbacks_struct callbacks{};
    callbacks.userdata = this;
    callbacks.auth_pubkey_function = [](ssh_session, const char*, ssh_key key, char state,
                                        void* self) {
      return static_cast<SshServer*>(self)->judge(ssh::public_text(key), state);
    };
    callbacks.channel_open_request_session_function = [](ssh_session, void* self) {
      return static_cast<SshServer*>(self)->open_session();
    };
    ssh_callbacks_init(&callbacks);
    ::ssh_set_server_callbacks(session_, &callbacks);
    ::ssh_set_message_callback(
        session_,
        [](ssh_session, ssh_message message, void* self) {
          return static_cast<SshServer*>(self)->begin_forward(message) ? 0 : 1;
        },
        this);
    ::ssh_set_auth_methods(session_, SSH_AUTH_METHOD_PUBLICKEY);
    if (::ssh_handle_key_exchange(session_) != SSH_OK) return;
    refusals_ = 0;
    hangs_up_ = false;
    const ssh_event event = ::ssh_event_new();
    ::ssh_event_add_session(event, session_);
    while (!is_over_ && !hangs_up_ && ::ssh_is_connected(session_) != 0 &&
           ::ssh_event_dopoll(event, 5) != SSH_ERROR) {
      for (Command& each : commands_) go_on(each);
      for (Forward& each : forwards_) go_on(each);
    }
    ::ssh_event_remove_session(event, session_);
    ::ssh_event_free(event);
  }

  int judge(const std::string& key, char state) {
    if (state == SSH_PUBLICKEY_STATE_NONE) note("offer " + key);
    if (state == SSH_PUBLICKEY_STATE_VALID) note("key " + key);
    const bool is_good = state == SSH_PUBLICKEY_STATE_NONE || state == SSH_PUBLICKEY_STATE_VALID;
    if (is_good && rules_.let_in.contains(key)) return SSH_AUTH_SUCCESS;
    if (is_good && rules_.half_in.contains(key)) return SSH_AUTH_PARTIAL;
    if (++refusals_ >= rules_.most_refusals) hangs_up_ = true;
    return SSH_AUTH_DENIED;
  }

  ssh_channel open_session() {
    note("session");
    if (rules_.refused_sessions-- > 0) return nullptr;
    Command& command = commands_.emplace_back(Command{this, ::ssh_channel_new(session_)});
    command.callbacks.userdata = &command;
    command.callbacks.channel_exec_request_function = [](ssh_session, ssh_channel, const char* line,
                                                         void* self) {
      return static_cast<Command*>(self)->server->begin(*static_cast<Command*>(self), line);
    };
    command.callbacks.channel_data_function = [](ssh_session, ssh_channel, void* data,
                                                 std::uint32_t size, int, void* self) {
      static_cast<Command*>(self)->input.append(static_cast<const char*>(data), size);
      return static_cast<int>(size);
    };
    command.callbacks.channel_eof_function = [](ssh_session, ssh_channel, void* self) {
      static_cast<Command*>(self)->has_all_input = true;
    };
    command.callbacks.channel_signal_function = [](ssh_session, ssh_channel, const char* name,
                                                   void* self) {
      auto* asked = static_cast<Command*>(self);
      asked->server->note(std::string("signal ") + name);
      if (std::string_view(name) == "KILL") asked->was_killed = true;
    };
    ssh_callbacks_init(&command.callbacks);
    ::ssh_set_channel_callbacks(command.channel, &command.callbacks);
    return command.channel;
  }

  bool begin_forward(ssh_message message) {
    if (::ssh_message_type(message) != SSH_REQUEST_CHANNEL_OPEN ||
        ::ssh_message_subtype(message) != SSH_CHANNEL_DIRECT_TCPIP) {
      return false;
    }
    const int port = ::ssh_message_channel_request_open_destination_port(message);
    note(fmt::format("forward {}:{}", ::ssh_message_channel_request_open_destination(message),
                     port));
    if (!rules_.answers_forwards) return true;
    if (!rules_.forwards) return false;
    ssh::OwnedFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = ::htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      return false;
    Forward& forward = forwards_.emplace_back(
        Forward{::ssh_message_channel_request_open_reply_accept(message), std::move(socket)});
    forward.callbacks.userdata = &forward;
    forward.callbacks.channel_data_function = [](ssh_session, ssh_channel, void* data,
                                                 std::uint32_t size, int, void* self) {
      return static_cast<int>(
          ::send(static_cast<Forward*>(self)->socket.get(), data, size, MSG_NOSIGNAL));
    };
    forward.callbacks.channel_eof_function = [](ssh_session, ssh_channel, void* self) {
      ::shutdown(static_cast<Forward*>(self)->socket.get(), SHUT_WR);
    };
    ssh_callbacks_init(&forward.callbacks);
    ::ssh_set_channel_callbacks(forward.channel, &forward.callbacks);
    return true;
  }

  static void go_on(Forward& forward) {
    char bytes[4096];
    ssize_t count = 0;
    while (forward.socket &&
           (count = ::recv(forward.socket.get(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
      ::ssh_channel_write(forward.channel, bytes, static_cast<std::uint32_t>(count));
    }
    if (!forward.socket || count != 0) return;
    forward.socket.reset();
    end(forward.channel);
  }

  int begin(Command& command, std::string line) {
    note("exec " + line);
    const bool is_script = line.starts_with("exec bash");
    if (line == "refuse" || (is_script && !rules_.runs_scripts)) return 1;
    if (is_script) line = "script";
    const std::string mark = "printf 'dtool-command-begins\\n' && ";  // a log-in shell greets first
    if (line.starts_with(mark)) {
      line.erase(0, mark.size());
      command.steps = {"say welcome", "say dtool-command-begins"};
    }
    for (std::size_t end; !line.empty(); line.erase(0, end + 2)) {
      end = std::min(line.find("; "), line.size());
      command.steps.push_back(line.substr(0, end));
      if (end == line.size()) break;
    }
    return 0;
  }

  /// Does the steps that can be done now.
  void go_on(Command& command) {
    while (!command.steps.empty() && is_done(command, command.steps.front()))
      command.steps.erase(command.steps.begin());
  }

  bool is_done(Command& command, const std::string& step) {
    const std::size_t blank = std::min(step.find(' '), step.size());
    const std::string verb = step.substr(0, blank);
    const std::string rest = blank < step.size() ? step.substr(blank + 1) : "";
    const ssh_channel channel = command.channel;
    const auto write = [channel](const std::string& text) {
      ::ssh_channel_write(channel, text.data(), static_cast<std::uint32_t>(text.size()));
    };
    if (verb == "say") {
      write(rest + "\n");
    } else if (verb == "complain") {
      ::ssh_channel_write_stderr(channel, (rest + "\n").c_str(),
                                 static_cast<std::uint32_t>(rest.size() + 1));
    } else if (verb == "fill") {
      write(std::string(std::stoul(rest), 'x'));
    } else if (verb == "exit") {
      ::ssh_channel_request_send_exit_status(channel, std::stoi(rest));
      end(channel);
    } else if (verb == "status") {
      ::ssh_channel_request_send_exit_status(channel, std::stoi(rest));
    } else if (verb == "die") {
      ::ssh_channel_request_send_exit_signal(channel, rest.c_str(), 0, "", "");
      end(channel);
    } else if (verb == "vanish") {
      end(channel);
    } else if (verb == "drop") {
      hangs_up_ = true;
    } else if (verb == "hang") {
      return command.was_killed;
    } else {
      if (!command.has_all_input) return false;
      if (verb == "count") {
        write(std::to_string(command.input.size()) + "\n");
      } else {
        note("input " + command.input);
        for (Command& each : commands_) each.was_killed = true;
        ::ssh_channel_request_send_exit_status(channel, 0);
        end(channel);
      }
    }
    return true;
  }

  static void end(ssh_channel channel) {
    ::ssh_channel_send_eof(channel);
    ::ssh_channel_close(channel);
  }

  ServerRules rules_;
  ssh_bind bind_;
  ssh::OwnedFd listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  int port_ = 0;
  std::string key_;
  ssh_session session_ = nullptr;
  std::list<Command> commands_;
  std::list<Forward> forwards_;
  int refusals_ = 0;
  bool hangs_up_ = false;
  std::atomic<bool> is_over_ = false;
  mutable std::mutex mutex_;
  std::vector<std::string> heard_;
  std::thread thread_;
};

}  // namespace dtool::tests
