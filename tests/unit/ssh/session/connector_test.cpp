// SPDX-License-Identifier: MIT
// Logging in to a server that falls silent, or that is another than it should be.
#include "ssh/session/connector.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <libssh/server.h>
#include <poll.h>
#include <sys/socket.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>

#include "ssh/host_error.h"
#include "tests/unit/run_in.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

ssh_key new_key() {
  ssh_key key = nullptr;
  if (::ssh_pki_generate(SSH_KEYTYPE_ED25519, 0, &key) != SSH_OK)
    throw std::runtime_error("libssh makes no key");
  return key;
}

/// Exchanges keys with one client on loopback, and then hears it and says nothing until it has
/// gone.
class SilentServer {
 public:
  SilentServer() : bind_(::ssh_bind_new()) {
    ssh_key key = new_key();
    char* text = nullptr;
    const bool is_configured = false;
    if (::ssh_pki_export_pubkey_base64(key, &text) != SSH_OK ||
        ::ssh_bind_options_set(bind_, SSH_BIND_OPTIONS_PROCESS_CONFIG, &is_configured) != SSH_OK ||
        ::ssh_bind_options_set(bind_, SSH_BIND_OPTIONS_IMPORT_KEY, key) != SSH_OK) {
      throw std::runtime_error("libssh makes no server");
    }
    key_ = std::string("ssh-ed25519 ") + text;
    ::ssh_string_free_char(text);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    auto* place = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    if (::bind(listener_.get(), place, size) != 0 || ::listen(listener_.get(), 1) != 0 ||
        ::getsockname(listener_.get(), place, &size) != 0) {
      throw std::runtime_error("no server on loopback");
    }
    port_ = std::to_string(::ntohs(address.sin_port));
    thread_ = std::thread([this] { serve(); });
  }

  ~SilentServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);  // where no client came
    thread_.join();
    ::ssh_bind_free(bind_);
  }

  const std::string& port() const { return port_; }
  const std::string& key() const { return key_; }

 private:
  void serve() {
    const int client = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (client == -1) return;
    ssh_session session = ::ssh_new();
    if (::ssh_bind_accept_fd(bind_, session, client) == SSH_OK) {
      ::ssh_handle_key_exchange(session);
      pollfd state{client, POLLRDHUP, 0};
      ::poll(&state, 1, 30'000);
    }
    ::ssh_free(session);
  }

  ssh_bind bind_;
  OwnedFd listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::string key_;
  std::string port_;
  std::thread thread_;
};

class LoggingIn : public testing::Test {
 protected:
  LoggingIn() {
    const KeyHandle key(new_key());
    if (::ssh_pki_export_privkey_file(key.get(), nullptr, nullptr, nullptr, identity_.c_str()) !=
        SSH_OK) {
      throw std::runtime_error("libssh writes no key");
    }
  }

  Failure failure_with(const std::string& known_hosts) {
    const auto known = folder_.write("known_hosts", known_hosts);
    ConnectOptions options;
    options.config_file = folder_.write(
        "config", "HostName 127.0.0.1\nPort " + server_.port() + "\nUserKnownHostsFile " +
                      known.string() +
                      "\nGlobalKnownHostsFile none\nIdentityAgent none\nIdentityFile " +
                      identity_.string() + "\n");
    options.connect_timeout = std::chrono::seconds(2);
    Connector connector(reactor_, options);
    try {
      tests::run_in(reactor_, connector.log_in(parse_host("server")));
    } catch (const HostError& error) {
      message_ = error.what();
      return error.failure();
    }
    return Failure::none;
  }

  const tests::TemporaryFolder folder_;
  const std::filesystem::path identity_ = folder_.path() / "identity";
  SilentServer server_;
  Reactor reactor_;
  std::string message_;
};

TEST_F(LoggingIn, DoesNotWaitForASilentServerBeyondTheDeadline) {
  EXPECT_EQ(failure_with("[127.0.0.1]:" + server_.port() + " " + server_.key() + "\n"),
            Failure::connect_timed_out);
  EXPECT_EQ(message_, "logging in did not end in time");
}

TEST_F(LoggingIn, IsNotTriedAtAServerThatNobodyKnows) {
  EXPECT_EQ(failure_with(""), Failure::host_key_unknown) << message_;
}

}  // namespace
}  // namespace dtool::ssh
