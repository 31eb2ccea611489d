// Every machine's but the first: connects, says who it is, hands on what failed here, and believes
// what it is told. Lines: `hello VERSION MACHINE MACHINES WORKERS HOST`, `alive`, `finished` and
// causes there; `welcome VERSION STORE_PORT HOST`, `alive`, `well` and a cause back.
#include <fmt/format.h>
#include <poll.h>

#include <sstream>
#include <stdexcept>

#include "trainer/launch/cause_exchange.h"
#include "trainer/launch/line_socket.h"
#include "trainer/launch/own_pause.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

using Clock = std::chrono::steady_clock;

/// How long machine 0's process may take to answer the first line.
constexpr auto kWelcomePatience = std::chrono::seconds(20);

class CauseClient : public CauseExchange {
 public:
  explicit CauseClient(const MachineInRun& self);

  std::uint16_t store_port() const override { return store_port_; }
  int descriptor() const override { return connection_.descriptor(); }
  void work() override;
  void report(const Cause& cause) override { connection_.send(write_cause(cause)); }
  void finish() override { connection_.send("finished"); }
  const std::optional<Outcome>& outcome() const override { return outcome_; }
  bool may_leave() const override { return outcome_.has_value(); }

 private:
  void await_welcome();
  void understand(const std::string& line);
  void lose(const std::string& how);

  MachineInRun self_;
  LineSocket connection_;
  std::uint16_t store_port_ = 0;
  std::string host_of_machine_0_;
  std::optional<Outcome> outcome_;
  Clock::time_point last_heard_ = Clock::now();
  OwnPause pause_{2 * kSignOfLife};
  Clock::time_point last_said_ = Clock::now();
};

int connect_to_machine_0(const MachineInRun& self) {
  const int connected = connect_within(self.listener, self.rendezvous_timeout);
  if (connected >= 0) return connected;
  throw std::runtime_error(fmt::format("machine 0 does not listen on {} (waited {} s)",
                                       to_string(self.listener), self.rendezvous_timeout.count()));
}

CauseClient::CauseClient(const MachineInRun& self)
    : self_(self), connection_(connect_to_machine_0(self)) {
  connection_.send(fmt::format("hello {} {} {} {} {}", kExchangeVersion, self.machine,
                               self.machines, self.workers, self.host));
  await_welcome();
}

void CauseClient::await_welcome() {
  const auto deadline = Clock::now() + kWelcomePatience;
  while (store_port_ == 0 && !outcome_ && !connection_.has_ended() && Clock::now() < deadline) {
    pollfd readable{connection_.descriptor(), POLLIN, 0};
    poll(&readable, 1, 100);
    work();
  }
  if (store_port_ == 0 && !outcome_) {
    throw UsageError(
        fmt::format("what listens on {} is not machine 0's dtool-trainer",
                    to_string(self_.listener)),
        "is the port another program's? --distributed_ip_and_port must name a free port of machine "
        "0");
  }
}

void CauseClient::work() {
  last_heard_ += pause_.take();
  for (const std::string& line : connection_.receive()) {
    last_heard_ = Clock::now();
    if (!outcome_) understand(line);
    if (outcome_) connection_.finish_sending();  // machine 0 need not wait for us
  }
  if (outcome_) return;
  if (connection_.has_ended()) {
    lose("its dtool-trainer ended without a word");
  } else if (Clock::now() - last_heard_ > self_.silence) {
    lose(fmt::format("no sign of life for {} s", self_.silence.count()));
  } else if (Clock::now() - last_said_ >= kSignOfLife) {
    connection_.send("alive");
    last_said_ = Clock::now();
  }
}

void CauseClient::understand(const std::string& line) {
  std::istringstream words(line);
  std::string word;
  int version = 0;
  words >> word;
  if (word == "well") {
    outcome_ = Outcome{};
  } else if (word == "welcome" && words >> version && version == kExchangeVersion) {
    words >> store_port_ >> host_of_machine_0_;
  } else if (const auto cause = read_cause(line)) {
    outcome_ = Outcome{cause};
  }
}

void CauseClient::lose(const std::string& how) {
  Cause cause;
  cause.text = fmt::format("{} was lost: {}", machine_name(0, host_of_machine_0_), how);
  if (store_port_ != 0) outcome_ = Outcome{cause};
}

}  // namespace

std::unique_ptr<CauseExchange> make_cause_client(const MachineInRun& self) {
  return std::make_unique<CauseClient>(self);
}

std::unique_ptr<CauseExchange> join_exchange(const MachineInRun& self) {
  return self.machine == 0 ? make_cause_server(self) : make_cause_client(self);
}

}  // namespace dtool::trainer
