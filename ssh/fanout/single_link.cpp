// SPDX-License-Identifier: MIT
#include "ssh/fanout/single_link.h"

#include <signal.h>

#include <chrono>
#include <exception>
#include <utility>

#include "ssh/fanout/links.h"
#include "ssh/host_error.h"
#include "ssh/session/ssh_connection.h"

namespace dtool::ssh {

SingleLink::SingleLink(Host host, const ConnectOptions& options)
    : host_(std::move(host)),
      connector_(reactor_, options),
      program_(options.program),
      masters_(reactor_, options),
      endings_(reactor_, [this](Asked) { on_asked(); }) {
  ::signal(SIGPIPE, SIG_IGN);
}

SingleLink::~SingleLink() {
  endings_.cancel();
  if (!is_interrupted_) masters_.leave_to_later();
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
  Endpoint endpoint;
  if (program_ != Program::ssh) endpoint = resolve_way(connector_.config(), host_);
  if (program_ == Program::libssh && !endpoint.needs_program.empty()) throw needs_program(endpoint);
  has_master_ = program_ == Program::ssh || !endpoint.needs_program.empty() ||
                (program_ == Program::automatic &&
                 (may_have_master(endpoint) ||
                  find_authority(connector_.config(), connector_.known_hosts(), endpoint)));
  if (has_master_) {
    connection_ = co_await connect_over_program(connector_, masters_, host_, endpoint);
  } else {
    std::unique_ptr<Session> session = co_await connector_.log_in(host_);
    session_ = session.get();
    connection_ = std::make_unique<SshConnection>(reactor_, std::move(session));
  }
  co_return connection_.get();
}

}  // namespace dtool::ssh
