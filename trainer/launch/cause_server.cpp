// Machine 0's: hears all, decides, tells all. See cause_client.cpp for the lines.
#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <system_error>
#include <vector>

#include "trainer/launch/cause_exchange.h"
#include "trainer/launch/front_door.h"
#include "trainer/launch/greeting.h"
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

/// A machine, and the connection to it.
struct Peer {
  std::unique_ptr<LineSocket> socket;
  int machine = 0;
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
  void tell_of_other_token();
  void listen_to(Peer& peer);
  void understand(Peer& peer, const std::string& line);
  void introduce(Guest& guest);
  void look_at_the_clock();
  void look_for_missing_machines();
  void end(const Outcome& outcome);
  void tell_outcome(Peer& peer);
  bool has_come(int machine) const;

  MachineInRun self_;
  ReservedPort store_port_;
  int watched_;  ///< epoll
  std::optional<FrontDoor> door_;
  bool has_told_of_token_ = false;
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
    door_.emplace(self_.listener, kMachineDoor, static_cast<std::size_t>(self_.machines),
                  self_.token);
  } catch (const std::system_error& problem) {
    throw UsageError(
        fmt::format("machine 0 cannot listen on {}: {}", to_string(self.listener),
                    problem.code().message()),
        "is the port taken? --distributed_ip_and_port must name a free port of machine 0");
  }
  watch(door_->descriptor());
}

CauseServer::~CauseServer() {
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
  if (door_) {
    for (Guest& each : door_->take()) introduce(each);
    tell_of_other_token();
  }
  for (const auto& peer : peers_) listen_to(*peer);
  // At the end a machine that hangs up is forgotten.
  std::erase_if(peers_, [this](const auto& peer) { return peer->socket->has_ended() && outcome_; });
  look_at_the_clock();
}

/// Once: it may be a machine of this run, which would be waited for in vain.
void CauseServer::tell_of_other_token() {
  if (has_told_of_token_ || door_->other_token_from().empty()) return;
  has_told_of_token_ = true;
  fmt::print(stderr, "dtool-trainer: turned away a process at {}: it has another run's token\n",
             door_->other_token_from());
}

void CauseServer::listen_to(Peer& peer) {
  for (const std::string& line : peer.socket->receive()) {
    peer.last_heard = Clock::now();
    understand(peer, line);
  }
  if (!peer.socket->has_ended() || outcome_) return;
  Cause cause;
  cause.text = fmt::format("{} was lost: its dtool-trainer ended without a word",
                           machine_name(peer.machine, peer.host));
  report(cause);
}

void CauseServer::understand(Peer& peer, const std::string& line) {
  if (line == "finished") {
    peer.has_finished = true;
  } else if (const auto cause = read_cause(line)) {
    report(*cause);
  }
}

/// Machines that were given other numbers cannot form a run.
void CauseServer::introduce(Guest& guest) {
  constexpr std::int64_t kMost = 1 << 20;
  const auto words = split_words(guest.words(), 4);
  if (!words) return;
  const auto number = parse_whole(words->at(0), 1, kMost);
  const auto its_machines = parse_whole(words->at(1), 2, kMost);
  const auto workers = parse_whole(words->at(2), 1, kMost);
  if (!number || !its_machines || !workers || *number >= *its_machines) return;
  const int machine = static_cast<int>(*number);
  const std::string& host = words->at(3);
  Cause mistake;
  mistake.exit_code = kMistake;
  mistake.hint =
      "every machine needs the same --distributed_nodes and --nproc_per_node, and its own "
      "--machine_id";
  if (*its_machines * *workers != std::int64_t{self_.machines} * self_.workers) {
    mistake.text =
        fmt::format("{} counts {} ranks, another machine {}", machine_name(machine, host),
                    *its_machines * *workers, std::int64_t{self_.machines} * self_.workers);
  } else if (*its_machines != self_.machines) {
    mistake.text = fmt::format("{} counts {} machines, machine 0 {}", machine_name(machine, host),
                               *its_machines, self_.machines);
  } else if (has_come(machine)) {
    mistake.text = fmt::format("two machines say that they are machine {}", machine);
  }
  auto socket = guest.welcome(fmt::format("{} {}", store_port_.number(), self_.host));
  socket->allow(LineSocket::kLongestLine);
  watch(socket->descriptor());
  peers_.push_back(std::make_unique<Peer>(Peer{std::move(socket), machine, host}));
  if (outcome_) return tell_outcome(*peers_.back());
  if (!mistake.text.empty()) report(mistake);
}

bool CauseServer::has_come(int machine) const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [=](const auto& peer) { return peer->machine == machine; });
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
    if (outcome_ || now - peer->last_heard <= self_.silence) continue;
    Cause cause;
    cause.text = fmt::format("{} was lost: no sign of life for {} s",
                             machine_name(peer->machine, peer->host), self_.silence.count());
    report(cause);
  }
  if (outcome_) return;
  const bool all_finished = has_finished_ && all_came_ &&
                            std::all_of(peers_.begin(), peers_.end(),
                                        [](const auto& peer) { return peer->has_finished; });
  if (all_finished) return end({});
  if (now - last_said_ < kSignOfLife) return;
  last_said_ = now;
  for (const auto& peer : peers_) {
    peer->socket->send("alive");
  }
}

void CauseServer::look_for_missing_machines() {
  if (all_came_) return;
  if (peers_.size() + 1 >= static_cast<std::size_t>(self_.machines)) {
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
    if (has_told_of_token_) {
      cause.hint = fmt::format(
          "a process at {} has another run's token: does {} name the same "
          "content on every machine?",
          door_->other_token_from(), kTokenFileVariable);
    }
    all_came_ = false;
    report(cause);
  }
}

void CauseServer::end(const Outcome& outcome) {
  outcome_ = outcome;
  ended_ = Clock::now();
  for (const auto& peer : peers_) {
    tell_outcome(*peer);
  }
}

/// The other side hangs up when it has read it. Were this side to close first, with a line of the
/// other's unread, the kernel would reset the connection and what is under way be lost.
void CauseServer::tell_outcome(Peer& peer) {
  peer.socket->send(outcome_->cause ? write_cause(*outcome_->cause) : "well");
  peer.socket->finish_sending();
}

bool CauseServer::may_leave() const {
  if (!outcome_) return false;
  const auto since = Clock::now() - ended_;
  const bool some_may_come = !all_came_ && self_.machines > 1;
  if (some_may_come) return since >= kLateComers;
  return peers_.empty() || since >= kLinger;
}

}  // namespace

std::unique_ptr<CauseExchange> make_cause_server(const MachineInRun& self) {
  return std::make_unique<CauseServer>(self);
}

}  // namespace dtool::trainer
