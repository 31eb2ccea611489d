// SPDX-License-Identifier: MIT
// For tests: a log-in to an SshServer, with a configuration, keys and known_hosts of its own.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "ssh/fanout/fleet.h"
#include "ssh/host_error.h"
#include "ssh/session/connector.h"
#include "tests/unit/run_in.h"
#include "tests/unit/ssh/ssh_server.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::tests {

class LogIn {
 public:
  /// A new key in the file NAME; returns its public part.
  std::string make_key(const std::string& name) const {
    const ssh::KeyHandle key = new_key();
    if (::ssh_pki_export_privkey_file(key.get(), nullptr, nullptr, nullptr, at(name).c_str()) !=
        SSH_OK) {
      throw std::runtime_error("libssh writes no key");
    }
    return ssh::public_text(key.get());
  }

  std::filesystem::path at(const std::string& name) const { return folder_.path() / name; }
  const TemporaryFolder& folder() const { return folder_; }

  /// The known_hosts line of that server.
  static std::string line_of(const SshServer& server) {
    return fmt::format("[127.0.0.1]:{} {}\n", server.port(), server.key());
  }

  /// Options of a command, by which the host of any name is that server.
  ssh::ConnectOptions options(const SshServer& server, const std::string& more) const {
    ssh::ConnectOptions options;
    options.config_file = folder_.write(
        "config", fmt::format("{}HostName 127.0.0.1\nPort {}\nUser ann\nUserKnownHostsFile {}\n"
                              "GlobalKnownHostsFile none\nIdentityAgent none\n",
                              more, server.port(), at("known_hosts").string()));
    options.connect_timeout = std::chrono::seconds(20);
    return options;
  }

  /// Logs in to the server, which is known.
  std::unique_ptr<ssh::Session> log_in(const SshServer& server, const std::string& more) {
    folder_.write("known_hosts", line_of(server));
    connector_ = std::make_unique<ssh::Connector>(reactor_, options(server, more));
    return run_in(reactor_, connector_->log_in(ssh::parse_host("server")));
  }

  ssh::Reactor& reactor() { return reactor_; }
  ssh::Connector& connector() { return *connector_; }

 private:
  TemporaryFolder folder_;
  ssh::Reactor reactor_;
  std::unique_ptr<ssh::Connector> connector_;
};

/// The HostError that `call` throws: its failure, and its sentence with the hint in the next line.
template <typename Call>
std::pair<ssh::Failure, std::string> error_of(Call call) {
  try {
    call();
  } catch (const ssh::HostError& error) {
    return {error.failure(),
            error.what() + (error.hint().empty() ? std::string() : "\nhint: " + error.hint())};
  }
  return {ssh::Failure::none, ""};
}

}  // namespace dtool::tests
