// SPDX-License-Identifier: MIT
#include "ssh/fanout/links.h"

#include <signal.h>

#include <chrono>
#include <exception>
#include <stdexcept>
#include <utility>

#include "ssh/host_error.h"
#include "ssh/kept/kept_connection.h"
#include "ssh/kept/kept_folder.h"
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
    : dialer_(reactor_, options),
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
  const Host& named = hosts_[host];
  if (named.is_local) co_return make_local_connection(reactor_);
  const Endpoint way = dialer_.way_to(named);
  if (keep_.count() > 0 && !dialer_.needs_ssh(way)) {
    std::string& key = keys_[host];
    key = connection_key(dialer_.connector().config(), named);
    if (kept_folder_) {
      auto kept = co_await take_kept(reactor_, *kept_folder_, key);
      if (kept != nullptr) co_return kept;
    }
  }
  co_return co_await dialer_.connect(named, way);
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
    KeptSession session{
        hosts_[i], dialer_.connector().config().resolve(hosts_[i]), keys_[i], {}, {}};
    session.connection.reset(ours);
    session.jumps = dialer_.connector().jump_sessions(session.endpoint.jumps);
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

SingleLink::SingleLink(Host host, const ConnectOptions& options)
    : host_(std::move(host)),
      dialer_(reactor_, options),
      endings_(reactor_, [this](Asked) { on_asked(); }) {
  ::signal(SIGPIPE, SIG_IGN);
}

SingleLink::~SingleLink() {
  endings_.cancel();
  if (!is_interrupted_) dialer_.masters().leave_to_later();
  reactor_.wind_up();
}

void SingleLink::on_asked() {
  is_interrupted_ = true;
  reactor_.abandon();
}

HostResult SingleLink::finish(asio::awaitable<void> task, HostResult& result) {
  result.host = host_;
  const auto begin = Clock::now();
  std::exception_ptr failure;
  asio::co_spawn(reactor_.context(), std::move(task), [this, &failure](std::exception_ptr error) {
    failure = error;
    reactor_.context().stop();
  });
  reactor_.context().restart();
  reactor_.context().run();
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const HostError& error) {
    result.failure = error.failure();
    result.error = error.what();
    result.hint = error.hint();
  }
  result.elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  return std::move(result);
}

asio::awaitable<Connection*> SingleLink::connect() {
  if (connection_ != nullptr && connection_->is_usable()) co_return connection_.get();
  if (connection_ != nullptr) lost_.push_back(std::move(connection_));
  session_ = nullptr;
  if (host_.is_local) {
    connection_ = make_local_connection(reactor_);
    co_return connection_.get();
  }
  const Endpoint way = dialer_.way_to(host_);
  connection_ = co_await dialer_.connect(host_, way);
  auto* ours = dynamic_cast<SshConnection*>(connection_.get());
  if (ours != nullptr) session_ = &ours->session();
  co_return connection_.get();
}

}  // namespace dtool::ssh
