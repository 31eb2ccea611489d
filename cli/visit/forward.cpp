// SPDX-License-Identifier: MIT
// `dtool forward`: ports of a host, or of a run's machine, as this machine's own.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/action.h"
#include "cli/host_options.h"
#include "cli/host_output.h"
#include "cli/logs/attach.h"
#include "cli/options.h"
#include "cli/record/recorded.h"
#include "cli/visit/exec.h"
#include "cli/watch/status_answer.h"
#include "ssh/fanout/port_forward.h"
#include "ssh/host/network.h"
#include "ssh/machine/files.h"
#include "ssh/remote.h"
#include "ssh/wire/words.h"

namespace dtool::cli {
namespace {

/// A port as the user names it: `6006`, or `HERE:THERE`.
struct Wish {
  std::optional<std::uint16_t> here;  ///< nothing: the same as there if it is free, else another
  std::uint16_t there = 0;
};

std::uint16_t port_in(const std::string& text, const std::string& whole) {
  if (const auto port = host::parse_port(text)) return *port;
  throw UsageError(fmt::format("{} is not a port", whole),
                   "a port is a number from 1 to 65535; HERE:THERE names two");
}

Wish read_wish(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == text.npos) return {{}, port_in(text, text)};
  return {port_in(text.substr(0, colon), text), port_in(text.substr(colon + 1), text)};
}

/// A socket that listens on this machine alone; none if the port is taken. 0: any free port.
ssh::OwnedFd listen_at(std::uint16_t port) {
  ssh::OwnedFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  const auto* place = reinterpret_cast<const sockaddr*>(&address);
  const bool listens = ::bind(listener.get(), place, sizeof address) == 0 &&
                       ::listen(listener.get(), SOMAXCONN) == 0;
  return listens ? std::move(listener) : ssh::OwnedFd();
}

ssh::OwnedFd open_here(const Wish& wish) {
  if (ssh::OwnedFd listener = listen_at(wish.here.value_or(wish.there))) return listener;
  const std::string reason = std::strerror(errno);
  if (wish.here)
    throw UsageError(
        fmt::format("port {} of this machine cannot be used: {}", *wish.here, reason),
        fmt::format("another one: PORT:{}; {} alone takes a free one", wish.there, wish.there));
  if (ssh::OwnedFd listener = listen_at(0)) return listener;
  throw UsageError(fmt::format("this machine has no port to listen on: {}", std::strerror(errno)));
}

std::string address_of(std::uint16_t port) {
  return fmt::format("http://127.0.0.1:{}", port);
}

/// What forwards, and where its ports lead.
struct Target {
  ssh::Host host;
  ssh::ConnectOptions connect;
  std::string name;     ///< for messages
  std::string address;  ///< the address that the host connects to
};

class ForwardAction : public Action, public ssh::ForwardEvents {
 public:
  void add_options(Options& command) override {
    command.add_option("RUN|HOST", where_, "a run's id or its beginning, last, last-1; or a host")
        .required();
    command
        .add_option("PORT [HERE:]THERE", wishes_,
                    "a port there; HERE:THERE gives it another number on this machine")
        .required();
    command.add_option("-m,--machine I", machine_,
                       "the run's machine, by its id or host (its first one)");
    command.add_flag("--open", open_, "show the first port in the web browser");
    add_connect_options(command, hosts_);
  }

  int run(Invocation& invocation) override {
    console_ = &invocation.console;
    std::vector<Wish> wishes;
    for (const std::string& text : wishes_) wishes.push_back(read_wish(text));
    target_ = find_target(invocation);
    if (target_.host.is_local)
      throw UsageError(fmt::format("{} is this machine", target_.name),
                       fmt::format("its port is here already: {}", address_of(wishes[0].there)));
    for (const Wish& wish : wishes) {
      listeners_.push_back(open_here(wish));
      ports_.push_back({listeners_.back().get(), target_.address, wish.there});
    }
    const auto result = ssh::forward_ports(target_.host, target_.connect, ports_, *this);
    if (!result) return kInterrupted;
    report_failures(*console_, {*result}, "reaching " + target_.name);
    return kSomeFailed;
  }

  void on_reached() override {
    nlohmann::json all = nlohmann::json::array();
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      const std::uint16_t here = host::port_of(listeners_[i]);
      all.push_back({{"host", ssh::to_string(target_.host)},
                     {"port", ports_[i].port},
                     {"local_port", here},
                     {"url", address_of(here)}});
      if (!console_->json())
        console_->say(
            fmt::format("{} is port {} of {}", address_of(here), ports_[i].port, target_.name));
    }
    if (console_->json()) console_->document({{"forwarded", all}});
    console_->note("Ctrl-C ends it");
    if (open_) open_in_browser(*console_, address_of(host::port_of(listeners_.front())));
  }

  void on_failure(const std::string& error, const std::string& hint) override {
    if (std::exchange(last_failure_, error) == error) return;  // a page asks again and again
    console_->fail(error, hint.empty() ? "does the program there listen yet?" : hint);
  }

  void on_connection() override { last_failure_.clear(); }

 private:
  Target find_target(Invocation& invocation) const {
    if (const auto run = run_unless_host(where_)) return machine_of(*run, invocation);
    if (!machine_.empty())
      throw UsageError(fmt::format("no run {} is recorded", where_), "dtool list names the runs");
    HostOptions hosts = hosts_;
    hosts.runs_on = where_;
    const auto targets = choose_targets(hosts, invocation.settings.all());
    if (targets->hosts.size() != 1)
      throw UsageError(fmt::format("{} is {} hosts", where_, targets->hosts.size()),
                       "dtool forward takes one");
    return {targets->hosts.front(), targets->connect, ssh::to_string(targets->hosts.front()),
            "127.0.0.1"};
  }

  Target machine_of(const killfiles::Killfile& run, Invocation& invocation) const {
    const Targets targets = recorded_targets(run, hosts_, invocation.settings.users());
    const std::size_t place = machine_.empty() ? 0 : find_machine(run, machine_);
    const killfiles::Machine& machine = run.machines.at(place);
    const ssh::Host& host = targets.hosts.at(place);
    Target target{host, targets.connect, fmt::format("machine{} of {}", machine.id, run.run_id),
                  "127.0.0.1"};
    if (run.job.empty()) return target;
    // A scheduler's machine is behind the login host.
    const auto remote = invocation.reach({host}, targets.connect);
    const std::vector<AskedMachine> asked = {{run.run_id, machine}};
    ssh::Events ignored;
    const ssh::HostResult answer =
        remote->run({{0, status_command(asked, Detail::brief)}}, ignored, {}).front();
    target.address = read_statuses(asked, answer).front().node;
    if (!ssh::is_address(target.address))
      throw UsageError(fmt::format("the node of {} is not known", target.name),
                       "dtool status tells its state");
    return target;
  }

  HostOptions hosts_;
  std::string where_;
  std::string machine_;
  std::vector<std::string> wishes_;
  bool open_ = false;

  Console* console_ = nullptr;
  Target target_;
  std::vector<ssh::OwnedFd> listeners_;
  std::vector<ssh::ForwardedPort> ports_;
  std::string last_failure_;  ///< what was told since the last connection
};

}  // namespace

std::unique_ptr<Action> make_forward() {
  return std::make_unique<ForwardAction>();
}

}  // namespace dtool::cli
