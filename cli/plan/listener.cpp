// SPDX-License-Identifier: MIT
#include "cli/plan/listener.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "cli/action.h"
#include "cli/failures.h"
#include "cli/flag_values.h"
#include "ssh/config/client_config.h"
#include "ssh/host/network.h"
#include "ssh/number.h"

namespace dtool::cli {
namespace {

/// The names that mean this host.
bool is_called(const ssh::Host& host, const std::string& name, const ssh::ClientConfig& config) {
  if (host.is_local) return is_loopback(name) || !host::interface_of(name).empty();
  return name == host.name || name == config.resolve(host).address;
}

}  // namespace

bool is_loopback(const std::string& name) {
  return name.starts_with("127.") || name == "localhost" || name == "local" || name == "::1";
}

ListenerAddress parse_listener(const std::string& text, const Targets& targets) {
  const std::size_t colon = text.rfind(':');
  const auto port =
      colon == text.npos ? std::nullopt : ssh::read_port(std::string_view(text).substr(colon + 1));
  if (!port || colon == 0) {
    throw UsageError(fmt::format("--distributed_ip_and_port wants IP:PORT or auto, not {}", text),
                     "the port is a number from 1 to 65535");
  }
  std::string address = text.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']'))
    address = address.substr(1, address.size() - 2);
  const auto config =
      ssh::ClientConfig::read(targets.connect.config_file, targets.connect.settings);
  for (std::size_t i = 0; i < targets.hosts.size(); ++i) {
    if (!is_called(targets.hosts[i], address, config)) continue;
    if (i == 0) return {address, *port};
    throw UsageError(fmt::format("--distributed_ip_and_port: {} is machine {}, but rank 0 listens "
                                 "on the first machine, {}",
                                 address, i, ssh::to_string(targets.hosts.front())),
                     fmt::format("name {} first in --runs_on", address));
  }
  throw UsageError(fmt::format("--distributed_ip_and_port: {} is not one of the hosts {}", address,
                               fold_hosts(targets.hosts)),
                   "rank 0 listens on the first of them; auto takes that one and a free port");
}

std::string peer_of(const Targets& targets) {
  const auto peer = std::ranges::find(targets.hosts, false, &ssh::Host::is_local);
  if (peer == targets.hosts.begin() || peer == targets.hosts.end()) return {};
  return ssh::ClientConfig::read(targets.connect.config_file, targets.connect.settings)
      .resolve(*peer)
      .address;
}

int parse_processes(const std::string& text) {
  const auto number = ssh::read_number<int>(text);
  if (!number || *number < 1 || *number > kMostProcesses)
    throw UsageError(fmt::format("--nproc_per_node wants a number from 1 to {} or auto, not {}",
                                 kMostProcesses, text));
  return *number;
}

}  // namespace dtool::cli
