// SPDX-License-Identifier: MIT
// Connections over the user's own `ssh` program: the user's open ControlMaster, one that an earlier
// command has left, or a new one.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ssh/config/client_config.h"
#include "ssh/connect_options.h"
#include "ssh/host.h"
#include "ssh/kept/kept_folder.h"
#include "ssh/machine/reactor.h"
#include "ssh/program/asker.h"
#include "ssh/program/master.h"
#include "ssh/program/program.h"
#include "ssh/session/connection.h"

namespace dtool::ssh {

class Masters {
 public:
  /// Opens no connection yet. Both references must outlive it.
  Masters(Reactor& reactor, const ConnectOptions& options);
  /// Ends the connections that this process has opened, unless they are left to later commands.
  ~Masters();
  Masters(const Masters&) = delete;
  Masters& operator=(const Masters&) = delete;

  /// Throws HostError.
  asio::awaitable<std::unique_ptr<Connection>> connect(Host host, Endpoint endpoint);

  /// A command line for /bin/sh that runs `line` on the host in this process's terminal, over the
  /// host's latest connection from connect().
  std::string terminal_line(const Host& host, const std::string& line) const;

  /// The words of a program that connects its standard input and output with that place, over the
  /// same connection.
  std::vector<std::string> forward_words(const Host& host, const std::string& address,
                                         std::uint16_t port) const;

  /// The key that the host shows: `ssh` asks for it and goes no further.
  struct Presented {
    std::optional<HostError> failure;  ///< the error that `ssh` met; nothing: the key is known
    std::string line;                  ///< the line for known_hosts, if the key is unknown
    std::filesystem::path known_hosts;
  };
  asio::awaitable<Presented> ask_for_key(Host host);

  /// From now on opens nothing and asks nothing; ends the connections that are being opened.
  void interrupt();

  /// Leaves this process's connections to later commands, if connections are kept.
  void leave_to_later() { is_left_ = true; }

 private:
  /// How one run of ssh ended.
  struct Ended {
    int exit_code = -1;
    std::string out;
    std::string err;
  };
  struct Opened {
    std::string name;
    pid_t pid = -1;
  };

  const KeptFolder& folder();
  const std::string& config_file();
  std::string way_to(const std::string& name);
  std::vector<std::string> words(const Host& host, const std::vector<std::string>& extra);
  asio::awaitable<Ended> finish(std::vector<std::string> words,
                                std::vector<std::string> environment, const Opening& opening);
  asio::awaitable<ProgramSettings> ask_settings(Host host, Opening& opening, std::string& key);
  asio::awaitable<void> open(Host host, std::string name, Opening& opening,
                             ProgramSettings settings);
  asio::awaitable<Ended> run_and_answer(std::vector<std::string> words, Opening& opening);
  Deadline connect_deadline(const std::optional<std::chrono::milliseconds>& configured) const;
  void end_all();

  Reactor& reactor_;
  ConnectOptions options_;
  Asker asker_;
  std::optional<KeptFolder> folder_;
  OwnedFd config_;
  std::string config_file_;
  std::vector<Opened> opened_;
  std::string last_socket_;  ///< the latest connection's socket, as connect() left it
  bool is_interrupted_ = false;
  bool is_left_ = false;
};

}  // namespace dtool::ssh
