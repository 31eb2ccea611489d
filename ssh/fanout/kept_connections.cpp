// SPDX-License-Identifier: MIT
#include "ssh/fanout/kept_connections.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <stdexcept>

#include "ssh/config/client_config.h"
#include "ssh/kept/kept_connection.h"
#include "ssh/kept/kept_folder.h"
#include "ssh/program/kept_masters.h"

namespace dtool::ssh {
namespace {

constexpr auto kLongestReply = std::chrono::seconds(5);

std::string target_of(const std::string& user, const std::string& address,
                      const std::string& port) {
  return fmt::format("{}@{}:{}", user, address, port);
}

/// A keeper that is there and says nothing: it is stopped, perhaps.
class Silence : public std::runtime_error {
 public:
  Silence() : std::runtime_error("a keeper does not answer") {}
};

/// The next message, or nothing if the keeper has gone. Throws Silence.
std::optional<Message> next_message(int socket) {
  pollfd readable{socket, POLLIN, 0};
  const auto timeout = std::chrono::milliseconds(kLongestReply).count();
  if (::poll(&readable, 1, static_cast<int>(timeout)) <= 0) throw Silence();
  Message message;
  if (receive_message(socket, message) != Received::message) return std::nullopt;
  return message;
}

/// Ends a connection that leads to one of `targets`, or to any host if that is nothing. Throws
/// Silence.
std::optional<EndedConnection> end_one(int keeper,
                                       const std::optional<std::vector<std::string>>& targets) {
  if (!send_message(keeper, std::string_view(&keeper_protocol::kDescribe, 1))) return std::nullopt;
  const std::optional<Message> answer = next_message(keeper);
  if (!answer) return std::nullopt;
  std::istringstream lines(answer->bytes);
  std::string host, address, user, port, state;
  std::getline(lines, host) && std::getline(lines, address) && std::getline(lines, user) &&
      std::getline(lines, port) && std::getline(lines, state);
  EndedConnection ended{parse_host(host), target_of(user, address, port), state == "taken"};
  if (targets && std::ranges::find(*targets, ended.target) == targets->end()) return std::nullopt;
  if (!send_message(keeper, std::string_view(&keeper_protocol::kEnd, 1))) return std::nullopt;
  if (!ended.is_in_use) next_message(keeper);  // its end of the socket is closed when it is done
  return ended;
}

}  // namespace

EndedConnections end_kept_connections(const std::optional<std::vector<Host>>& hosts,
                                      const ConnectOptions& options) {
  std::optional<std::vector<std::string>> targets;
  if (hosts) {
    const ClientConfig config = ClientConfig::read(options.config_file, options.settings);
    targets.emplace();
    for (const Host& host : *hosts) {
      const Endpoint endpoint = config.resolve(host);
      targets->push_back(target_of(endpoint.user, endpoint.address, std::to_string(endpoint.port)));
    }
  }
  EndedConnections all;
  const std::optional<KeptFolder> folder = KeptFolder::open(KeptFolder::Make::no);
  if (!folder) return all;
  for (const std::string& name : folder->names()) {
    if (!name.starts_with(socket_prefix())) continue;
    const KeptFolder::Connecting connecting = folder->connect(name);
    if (connecting.reached == Reached::refused) {
      const OwnedFd lock = folder->lock();
      if (lock && folder->connect(name).reached == Reached::refused) folder->remove(name);
    } else if (connecting.reached == Reached::yes) {
      const int keeper = connecting.socket.get();
      const pid_t pid = pid_behind(keeper);  // one keeps many connections
      if (std::ranges::find(all.silent, pid) != all.silent.end()) continue;
      try {
        if (auto ended = end_one(keeper, targets)) all.ended.push_back(std::move(*ended));
      } catch (const Silence&) {
        all.silent.push_back(pid);
      }
    }
  }
  for (KeptMaster& master : end_kept_masters(*folder, targets)) {
    if (master.silent != 0) {
      all.silent.push_back(master.silent);
      continue;
    }
    Host host;
    try {
      host = parse_host(master.host);
    } catch (const std::invalid_argument&) {  // its file is gone
      host.name = "?";
    }
    all.ended.push_back({host, master.target, master.is_in_use});
  }
  return all;
}

}  // namespace dtool::ssh
