// SPDX-License-Identifier: MIT
#include "ssh/fanout/links.h"

#include <exception>
#include <stdexcept>
#include <utility>

#include "ssh/kept/kept_connection.h"
#include "ssh/kept/kept_folder.h"
#include "ssh/program/program_choice.h"
#include "ssh/session/ssh_connection.h"

namespace dtool::ssh {
namespace {

std::optional<KeptFolder> open_kept_folder() {
  try {
    return KeptFolder::open(KeptFolder::Make::no);
  } catch (const std::runtime_error&) {
    return std::nullopt;  // not this user's alone: `dtool disconnect` says so
  }
}

}  // namespace

HostLinks::HostLinks(const std::vector<Host>& hosts, const ConnectOptions& options)
    : connector_(reactor_, options),
      program_(options.program),
      masters_(reactor_, options),
      keep_(options.keep),
      hosts_(hosts),
      keys_(hosts.size()),
      links_(hosts.size()) {
  if (keep_.count() > 0) kept_folder_ = open_kept_folder();
}

asio::awaitable<Connection*> HostLinks::connect(std::size_t host) {
  Link& link = links_[host];
  const bool is_busy = link.program != nullptr && link.program->is_running();
  if (link.connection != nullptr && (is_busy || link.connection->is_usable()))
    co_return link.connection.get();
  link = {};
  link.connection = co_await open(host);
  co_return link.connection.get();
}

ServingProgram& HostLinks::program(std::size_t host) {
  Link& link = links_[host];
  if (link.program == nullptr)
    link.program = std::make_unique<ServingProgram>(reactor_, *link.connection);
  return *link.program;
}

asio::awaitable<void> HostLinks::end_program(std::size_t host) {
  if (links_[host].program != nullptr) co_await links_[host].program->end();
}

void HostLinks::end_programs() {
  std::size_t running = 0;
  for (std::vector<Link>* links : {&links_, &dropped_}) {
    for (Link& link : *links) {
      if (link.program == nullptr || !link.program->is_running()) continue;
      ++running;
      asio::co_spawn(reactor_.context(), link.program->end(),
                     [&running](const std::exception_ptr&) { --running; });
    }
  }
  reactor_.context().restart();
  while (running > 0) reactor_.context().run_one();
}

/// What the connection is used for ends with it, soon.
void HostLinks::drop(std::size_t host) {
  Link link = std::move(links_[host]);
  links_[host] = {};
  if (link.program == nullptr || !link.program->is_running()) return;
  link.connection->abandon();
  dropped_.push_back(std::move(link));
}

asio::awaitable<std::unique_ptr<Connection>> HostLinks::open(std::size_t host) {
  if (hosts_[host].is_local) co_return make_local_connection(reactor_);
  if (program_ == Program::ssh) {
    const Host& named = hosts_[host];
    const Endpoint unasked;  // ssh reads the configuration by itself
    co_return co_await masters_.connect(named, unasked);
  }
  const Endpoint endpoint = resolve_way(connector_.config(), hosts_[host]);
  if (!endpoint.needs_program.empty()) {
    if (program_ == Program::libssh) throw needs_program(endpoint);
    co_return co_await connect_over_program(connector_, masters_, hosts_[host], endpoint);
  }
  if (keep_.count() > 0) {
    std::string& key = keys_[host];
    key = connection_key(connector_.config(), hosts_[host]);
    if (kept_folder_) {
      auto kept = co_await take_kept(reactor_, *kept_folder_, key);
      if (kept != nullptr) co_return kept;
    }
  }
  const bool is_over_program =
      program_ == Program::automatic &&
      (may_have_master(endpoint) ||
       find_authority(connector_.config(), connector_.known_hosts(), endpoint));
  if (is_over_program)
    co_return co_await connect_over_program(connector_, masters_, hosts_[host], endpoint);
  co_return co_await log_in(host);
}

asio::awaitable<std::unique_ptr<Connection>> HostLinks::log_in(std::size_t host) {
  std::unique_ptr<Session> session;
  std::optional<HostError> refused;
  try {
    session = co_await connector_.log_in(hosts_[host]);
  } catch (const HostError& error) {
    if (error.failure() != Failure::not_authenticated || program_ == Program::libssh) throw;
    refused = with_hint_at_program(error);
  }
  if (refused) throw *refused;
  co_return std::make_unique<SshConnection>(reactor_, std::move(session));
}

/// Takes the sessions that this process has opened out of `links_`; closes all others.
std::vector<KeptSession> HostLinks::sessions_to_keep() {
  std::vector<KeptSession> sessions;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    links_[i].program.reset();
    std::unique_ptr<Connection> connection = std::move(links_[i].connection);
    auto* ours = dynamic_cast<SshConnection*>(connection.get());
    if (ours == nullptr || !ours->is_usable()) continue;
    connection.release();
    KeptSession session{hosts_[i], connector_.config().resolve(hosts_[i]), keys_[i], {}, {}};
    session.connection.reset(ours);
    session.jumps = connector_.jump_sessions(session.endpoint.jumps);
    sessions.push_back(std::move(session));
  }
  return sessions;
}

bool leave_to_keeper(std::unique_ptr<HostLinks>& links) noexcept {
  if (links->keep_.count() == 0 || links->reactor_.abandoned()) return false;
  try {
    auto sessions = std::make_unique<std::vector<KeptSession>>(links->sessions_to_keep());
    if (sessions->empty() || !start_keeper(links->reactor_, *sessions, links->keep_)) return false;
    static auto& left = *new std::vector<std::pair<HostLinks*, std::vector<KeptSession>*>>;
    left.emplace_back(links.release(), sessions.release());
    return true;
  } catch (const std::exception&) {
    return false;  // the result is as if nothing is kept: the next command connects by itself
  }
}

}  // namespace dtool::ssh
