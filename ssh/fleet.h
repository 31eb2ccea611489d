// The real Remote: one thread, one io_context, one libssh session a host.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ssh/remote.h"

namespace dtool::ssh {

/// Who speaks SSH with the hosts.
enum class Program {
  automatic,  ///< libssh, and `ssh` where the SSH configuration asks for what libssh cannot do
  libssh,     ///< such a host is a failure
  ssh,        ///< the user's own `ssh` program for every host
};

/// What `ssh` asks the user: for each host, or once for all whose user and prompt are the same.
enum class Ask { each, once };

/// How hosts are reached.
struct ConnectOptions {
  std::optional<std::filesystem::path> config_file = {};           ///< as ssh -F
  std::vector<std::pair<std::string, std::string>> settings = {};  ///< as ssh -o, keyword and value
  std::chrono::milliseconds connect_timeout{10'000};  ///< where the configuration says nothing
  std::optional<std::chrono::milliseconds> forced_connect_timeout = {};  ///< whatever it says
  std::size_t width = 256;       ///< hosts at work at once, at most
  std::chrono::seconds keep{0};  ///< for later commands, connections stay open while they are
                                 ///< idle for less than this; 0: no connection is kept or taken
  int tries =
      6;  ///< for a connection that is dropped before its greeting; nothing else is tried again
  Program program = Program::automatic;
  Ask ask = Ask::each;
  std::filesystem::path trace = {};  ///< a folder for what each host was asked and said; or empty

  bool operator==(const ConnectOptions&) const = default;
};

/// Reaches nobody yet. Throws std::invalid_argument if the SSH configuration cannot be read or
/// the folder for traces not be written, and std::runtime_error if the limit of open files is
/// too low for so many hosts.
std::unique_ptr<Remote> make_fleet(std::vector<Host> hosts, const ConnectOptions& options);

/// The internal command that rsync runs as its remote shell: passes its standard streams and
/// `words` to the dtool that started rsync, waits, and returns the remote exit code (255 where
/// there is no such dtool).
int remote_shell(const std::vector<std::string>& words);

}  // namespace dtool::ssh
