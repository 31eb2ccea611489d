// Connections over the user's own `ssh` program: a ControlMaster of the user's that is open
// already, one that an earlier command has left, or a new one.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ssh/config/client_config.h"
#include "ssh/connection.h"
#include "ssh/fleet.h"
#include "ssh/host.h"
#include "ssh/kept/kept_folder.h"
#include "ssh/machine/reactor.h"
#include "ssh/program/asker.h"
#include "ssh/program/master.h"
#include "ssh/program/program.h"

namespace dtool::ssh {

class Masters {
 public:
  /// Reaches nobody yet. Both references must outlive it.
  Masters(Reactor& reactor, const ConnectOptions& options);
  /// Ends the connections that this process has opened, unless later commands are to have them.
  ~Masters();
  Masters(const Masters&) = delete;
  Masters& operator=(const Masters&) = delete;

  /// Throws HostError.
  asio::awaitable<std::unique_ptr<Connection>> connect(Host host, Endpoint endpoint);

  /// A command line for /bin/sh that runs `line` on the host in this process's terminal, over the
  /// connection that connect() made to it last.
  std::string terminal_line(const Host& host, const std::string& line) const;

  /// What the host presents: `ssh` asks for the key and goes no further.
  struct Presented {
    std::optional<HostError> failure;  ///< none: the key is known
    std::string line;                  ///< for known_hosts, where it is unknown
    std::filesystem::path known_hosts;
  };
  asio::awaitable<Presented> ask_for_key(Host host);

  /// From now on nothing is opened and nobody is asked, and what is being opened ends.
  void interrupt();

  /// Later commands are to have what this process has opened, where connections are kept at all.
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
  OwnedFd take_slot(const std::string& key, std::string& name);
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
  std::string last_socket_;  ///< as connect() left it
  bool is_interrupted_ = false;
  bool is_left_ = false;
};

/// A master that is kept for later commands, as `dtool disconnect` sees it.
struct KeptMaster {
  std::string host;
  std::string target;  ///< `user@address:port`
  bool is_in_use = false;
  pid_t silent = 0;  ///< the process, where it did not answer and so was not ended
};

/// Ends those in the folder that lead to one of `targets`, or all; removes what dead ones have
/// left.
std::vector<KeptMaster> end_kept_masters(const KeptFolder& folder,
                                         const std::optional<std::vector<std::string>>& targets);

}  // namespace dtool::ssh
