// Machine 0's: hears all, decides, tells all. See cause_client.cpp for the lines.
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <system_error>
#include <vector>

#include "trainer/launch/cause_exchange.h"
#include "trainer/launch/line_socket.h"
#include "trainer/launch/own_pause.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

/// A suspicion waits so long for a certain cause: a dead worker is seen by its own machine at once,
/// by others sooner or later.
constexpr auto kCauseIsOnItsWay = seconds(3);

/// At the end, so long for a machine to hang up, and for one that comes late, to be told.
constexpr auto kLinger = seconds(2);
constexpr auto kLateComers = seconds(6);

/// A connection, and the machine behind it once it has said hello.
struct Peer {
  explicit Peer(int descriptor) : socket(descriptor) {}
  LineSocket socket;
  int machine = -1;
  std::string host;
  bool has_finished = false;
  Clock::time_point last_heard = Clock::now();
};

class CauseServer : public CauseExchange {
 public:
  explicit CauseServer(const MachineInRun& self);
  ~CauseServer() override;

  std::uint16_t store_port() const override { return store_port_.number(); }
  int descriptor() const override { return watched_; }
  void work() override;
  void report(const Cause& cause) override;
  void finish() override;
  const std::optional<Outcome>& outcome() const override { return outcome_; }
  bool may_leave() const override;

 private:
  void watch(int descriptor);
  void welcome_new_ones();
  void listen_to(Peer& peer);
  void understand(Peer& peer, const std::string& line);
  void introduce(Peer& peer, std::istringstream& words);
  void look_at_the_clock();
  void look_for_missing_machines();
  void end(const Outcome& outcome);
  void tell_outcome(Peer& peer);
  bool has_come(int machine) const;
  std::size_t count_come() const;

  MachineInRun self_;
  ReservedPort store_port_;
  int watched_;  ///< epoll
  int listener_ = -1;
  std::vector<std::unique_ptr<Peer>> peers_;
  OwnPause pause_{2 * kSignOfLife};
  bool has_finished_ = false;
  std::optional<Cause> suspected_;
  std::optional<Outcome> outcome_;
  std::optional<bool> all_came_;
  Clock::time_point began_ = Clock::now();
  Clock::time_point last_said_ = Clock::now();
  Clock::time_point suspected_since_;
  Clock::time_point ended_;
};

CauseServer::CauseServer(const MachineInRun& self)
    : self_(self),
      store_port_(self.machines == 1 ? ReservedPort::For::this_machine
                                     : ReservedPort::For::all_machines),
      watched_(epoll_create1(EPOLL_CLOEXEC)) {
  if (self.machines == 1) return;
  try {
    listener_ = listen_on(self.listener.port);
  } catch (const std::system_error& problem) {
    throw UsageError(
        fmt::format("machine 0 cannot listen on {}: {}", to_string(self.listener),
                    problem.code().message()),
        "is the port taken? --distributed_ip_and_port must name a free port of machine 0");
  }
  watch(listener_);
}

CauseServer::~CauseServer() {
  if (listener_ >= 0) close(listener_);
  close(watched_);
}

void CauseServer::watch(int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(watched_, EPOLL_CTL_ADD, descriptor, &event);
}

void CauseServer::work() {
  const auto pause = pause_.take();
  for (const auto& peer : peers_) peer->last_heard += pause;
  welcome_new_ones();
  for (const auto& peer : peers_) listen_to(*peer);
  // A stranger that hangs up is forgotten, and so is, at the end, a machine.
  std::erase_if(peers_, [this](const auto& peer) {
    return peer->socket.has_ended() && (outcome_ || peer->machine < 0);
  });
  look_at_the_clock();
}

void CauseServer::welcome_new_ones() {
  while (listener_ >= 0) {
    const int connected = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connected < 0) return;
    peers_.push_back(std::make_unique<Peer>(connected));
    watch(connected);
  }
}

void CauseServer::listen_to(Peer& peer) {
  for (const std::string& line : peer.socket.receive()) {
    peer.last_heard = Clock::now();
    understand(peer, line);
  }
  if (!peer.socket.has_ended() || peer.machine < 0 || outcome_) return;
  Cause cause;
  cause.text = fmt::format("{} was lost: its dtool-trainer ended without a word",
                           machine_name(peer.machine, peer.host));
  report(cause);
}

void CauseServer::understand(Peer& peer, const std::string& line) {
  std::istringstream words(line);
  std::string word;
  words >> word;
  if (word == "hello") return introduce(peer, words);
  if (peer.machine < 0) return;
  if (word == "finished") {
    peer.has_finished = true;
  } else if (const auto cause = read_cause(line)) {
    report(*cause);
  }
}

/// Machines that were given other numbers cannot form a run.
void CauseServer::introduce(Peer& peer, std::istringstream& words) {
  int version = 0, machine = 0, machines = 0, workers = 0;
  std::string host;
  words >> version >> machine >> machines >> workers >> host;
  if (!words || version != kExchangeVersion || machine < 1) return;
  Cause mistake;
  mistake.exit_code = kMistake;
  mistake.hint =
      "every machine needs the same --distributed_nodes and --nproc_per_node, and its own "
      "--machine_id";
  if (machines * workers != self_.machines * self_.workers) {
    mistake.text =
        fmt::format("{} counts {} ranks, another machine {}", machine_name(machine, host),
                    machines * workers, self_.machines * self_.workers);
  } else if (machines != self_.machines) {
    mistake.text = fmt::format("{} counts {} machines, machine 0 {}", machine_name(machine, host),
                               machines, self_.machines);
  } else if (has_come(machine)) {
    mistake.text = fmt::format("two machines say that they are machine {}", machine);
  }
  peer.machine = machine;
  peer.host = host;
  peer.socket.send(
      fmt::format("welcome {} {} {}", kExchangeVersion, store_port_.number(), self_.host));
  if (outcome_) return tell_outcome(peer);
  if (!mistake.text.empty()) report(mistake);
}

bool CauseServer::has_come(int machine) const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [=](const auto& peer) { return peer->machine == machine; });
}

std::size_t CauseServer::count_come() const {
  return static_cast<std::size_t>(std::count_if(
      peers_.begin(), peers_.end(), [](const auto& peer) { return peer->machine >= 0; }));
}

void CauseServer::report(const Cause& cause) {
  if (outcome_) return;
  if (cause.certainty == Cause::Certainty::certain) return end({cause});
  if (suspected_) return;
  suspected_ = cause;
  suspected_since_ = Clock::now();
}

void CauseServer::finish() {
  has_finished_ = true;
  look_at_the_clock();
}

void CauseServer::look_at_the_clock() {
  const auto now = Clock::now();
  if (!outcome_ && suspected_ && now - suspected_since_ >= kCauseIsOnItsWay) end({suspected_});
  if (outcome_) return;
  look_for_missing_machines();
  for (const auto& peer : peers_) {
    if (outcome_ || peer->machine < 0 || now - peer->last_heard <= self_.silence) continue;
    Cause cause;
    cause.text = fmt::format("{} was lost: no sign of life for {} s",
                             machine_name(peer->machine, peer->host), self_.silence.count());
    report(cause);
  }
  if (outcome_) return;
  const bool all_finished =
      has_finished_ && all_came_ && std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) {
        return peer->has_finished || peer->machine < 0;
      });
  if (all_finished) return end({});
  if (now - last_said_ < kSignOfLife) return;
  last_said_ = now;
  for (const auto& peer : peers_) {
    if (peer->machine >= 0) peer->socket.send("alive");
  }
}

void CauseServer::look_for_missing_machines() {
  if (all_came_) return;
  if (count_come() + 1 >= static_cast<std::size_t>(self_.machines)) {
    all_came_ = true;
  } else if (Clock::now() - began_ >= self_.rendezvous_timeout) {
    std::vector<int> ranks;
    for (int machine = 1; machine < self_.machines; ++machine) {
      if (has_come(machine)) continue;
      for (int i = 0; i < self_.workers; ++i) ranks.push_back(machine * self_.workers + i);
    }
    Cause cause;
    cause.text = fmt::format("no word within {} s from {}", self_.rendezvous_timeout.count(),
                             name_missing_ranks(ranks, self_.workers));
    all_came_ = false;
    report(cause);
  }
}

void CauseServer::end(const Outcome& outcome) {
  outcome_ = outcome;
  ended_ = Clock::now();
  for (const auto& peer : peers_) {
    if (peer->machine >= 0) tell_outcome(*peer);
  }
}

/// The other side hangs up when it has read it. Were this side to close first, with a line of the
/// other's unread, the kernel would reset the connection and what is under way be lost.
void CauseServer::tell_outcome(Peer& peer) {
  peer.socket.send(outcome_->cause ? write_cause(*outcome_->cause) : "well");
  peer.socket.finish_sending();
}

bool CauseServer::may_leave() const {
  if (!outcome_) return false;
  const auto since = Clock::now() - ended_;
  const bool some_may_come = !all_came_ && self_.machines > 1;
  if (some_may_come) return since >= kLateComers;
  return count_come() == 0 || since >= kLinger;
}

}  // namespace

std::unique_ptr<CauseExchange> make_cause_server(const MachineInRun& self) {
  return std::make_unique<CauseServer>(self);
}

}  // namespace dtool::trainer
