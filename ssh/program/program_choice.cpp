// SPDX-License-Identifier: MIT
#include "ssh/program/program_choice.h"

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <string>
#include <utility>

#include "ssh/machine/files.h"
#include "ssh/session/ssh_connection.h"

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

namespace {

/// Whether the user may have an open ControlMaster to that host: a socket exists at a path that
/// matches ControlPath. Only `ssh` knows for sure.
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

/// A refused login, with a hint at what `ssh` could do in addition.
HostError with_hint_at_program(const HostError& refused) {
  const std::string hint = refused.hint();
  return {refused.failure(), refused.what(),
          fmt::format("{}{}if the host wants a password or a code: --ssh_program ssh", hint,
                      hint.empty() ? "" : " ")};
}

}  // namespace

Endpoint Dialer::way_to(const Host& host) const {
  if (program_ == Program::ssh) return {};
  Endpoint way = resolve_way(connector_.config(), host);
  if (program_ == Program::libssh && !way.needs_program.empty()) throw needs_program(way);
  return way;
}

bool Dialer::needs_ssh(const Endpoint& way) const {
  return program_ == Program::ssh || (program_ == Program::automatic && !way.needs_program.empty());
}

asio::awaitable<std::unique_ptr<Connection>> Dialer::connect(Host host, Endpoint way) {
  const ClientConfig& config = connector_.config();
  bool is_over_program = needs_ssh(way);
  if (!is_over_program && program_ == Program::automatic)
    is_over_program = may_have_master(way) || find_authority(config, connector_.known_hosts(), way);
  std::optional<HostError> failure;
  try {
    if (is_over_program) co_return co_await masters_.connect(host, way);
    std::unique_ptr<Session> session = co_await connector_.log_in(host);
    co_return std::make_unique<SshConnection>(reactor_, std::move(session));
  } catch (const HostError& error) {
    failure = error;
  }
  const Failure kind = failure->failure();
  if (is_over_program && kind == Failure::host_key_unknown) {
    // The plain key of such a host is not to be put on record beside its authority.
    std::optional<HostError> of_authority;
    try {
      const Endpoint known = config.resolve(host);
      if (const auto authority = find_authority(config, connector_.known_hosts(), known))
        of_authority = not_certified(*authority);
    } catch (const std::invalid_argument&) {
      // dtool cannot read what the user's ssh reads.
    }
    if (of_authority) throw *of_authority;
  }
  const bool may_do_more = !is_over_program && program_ != Program::libssh;
  if (may_do_more && kind == Failure::not_authenticated) throw with_hint_at_program(*failure);
  throw *failure;
}

}  // namespace dtool::ssh
