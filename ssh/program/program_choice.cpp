// SPDX-License-Identifier: MIT
#include "ssh/program/program_choice.h"

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <string>

#include "ssh/machine/files.h"

namespace dtool::ssh {

Endpoint resolve_way(const ClientConfig& config, const Host& host) {
  Endpoint endpoint = config.resolve(host);
  if (endpoint.needs_program.empty()) endpoint.needs_program = refused_by_libssh(endpoint);
  for (const std::string& jump : endpoint.jumps) {
    if (!endpoint.needs_program.empty()) break;
    const Endpoint before = config.resolve_jump(parse_host(jump));
    const std::string need =
        before.needs_program.empty() ? refused_by_libssh(before) : before.needs_program;
    if (!need.empty()) endpoint.needs_program = fmt::format("{} for jump host {}", need, jump);
  }
  return endpoint;
}

std::optional<KeyVerdict> find_authority(const ClientConfig& config, KnownHosts& known_hosts,
                                         const Endpoint& endpoint) {
  const KeyVerdict own = known_hosts.judge(endpoint, "");
  if (own.state == HostKeyState::certified) return own;
  for (const std::string& jump : endpoint.jumps) {
    const KeyVerdict its = known_hosts.judge(config.resolve_jump(parse_host(jump)), "");
    if (its.state == HostKeyState::certified) return its;
  }
  return std::nullopt;
}

HostError not_certified(const KeyVerdict& authority) {
  return {Failure::host_key_unproven,
          fmt::format("the host is known by a certificate authority only ({}), and has shown no "
                      "certificate of it that is good",
                      place_of(authority)),
          "does its sshd_config name a HostCertificate, for this name, that has not expired?"};
}

asio::awaitable<std::unique_ptr<Connection>> connect_over_program(Connector& connector,
                                                                  Masters& masters, Host host,
                                                                  Endpoint endpoint) {
  std::optional<HostError> failure;
  try {
    co_return co_await masters.connect(host, endpoint);
  } catch (const HostError& error) {
    failure = error;
  }
  const auto authority = find_authority(connector.config(), connector.known_hosts(), endpoint);
  // The plain key of such a host is not to be put on record beside its authority.
  if (authority && failure->failure() == Failure::host_key_unknown) throw not_certified(*authority);
  throw *failure;
}

bool may_have_master(const Endpoint& endpoint) {
  if (endpoint.control_path.empty()) return false;
  std::string pattern;
  const std::string path = from_home(endpoint.control_path).string();
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '%') {
      pattern += '*';
      ++i;
    } else if (path[i] == '$' && i + 1 < path.size() && path[i + 1] == '{') {
      pattern += '*';
      while (i < path.size() && path[i] != '}') ++i;
    } else {
      if (path[i] == '*' || path[i] == '?' || path[i] == '[' || path[i] == '\\') pattern += '\\';
      pattern += path[i];
    }
  }
  glob_t found = {};
  bool is_there = false;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (std::size_t i = 0; i < found.gl_pathc && !is_there; ++i) {
      struct stat status {};
      is_there = ::stat(found.gl_pathv[i], &status) == 0 && S_ISSOCK(status.st_mode);
    }
  }
  ::globfree(&found);
  return is_there;
}

HostError with_hint_at_program(const HostError& refused) {
  const std::string hint = refused.hint();
  return {refused.failure(), refused.what(),
          fmt::format("{}{}if the host wants a password or a code: --ssh_program ssh", hint,
                      hint.empty() ? "" : " ")};
}

}  // namespace dtool::ssh
