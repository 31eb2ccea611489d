// Every machine's but the first: connects, says who it is, hands on what failed here, and believes
// what it is told. In the greeting (greeting.h) it says `MACHINE MACHINES WORKERS HOST` and hears
// `STORE_PORT HOST`; then come `alive`, `finished` and causes there; `alive`, `well` and a cause
// back.
#include <fmt/format.h>

#include <stdexcept>

#include "trainer/launch/cause_exchange.h"
#include "trainer/launch/greeting.h"
#include "trainer/launch/line_socket.h"
#include "trainer/launch/own_pause.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

using Clock = std::chrono::steady_clock;

class CauseClient : public CauseExchange {
 public:
  CauseClient(const MachineInRun& self, const Call& call);

  std::uint16_t store_port() const override { return store_port_; }
  int descriptor() const override { return connection_.descriptor(); }
  void work() override;
  void report(const Cause& cause) override { connection_.send(write_cause(cause)); }
  void finish() override { connection_.send("finished"); }
  const std::optional<Outcome>& outcome() const override { return outcome_; }
  bool may_leave() const override { return outcome_.has_value(); }

 private:
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

Call call_machine_0(const MachineInRun& self) {
  const auto words =
      fmt::format("{} {} {} {}", self.machine, self.machines, self.workers, self.host);
  try {
    return call_at(self.listener, kMachineDoor, words, self.rendezvous_timeout, self.token);
  } catch (const NotOfThisRun&) {
    throw NotAdmitted(
        fmt::format("what listens on {} is not machine 0's dtool-trainer, or was given another "
                    "token than this machine",
                    to_string(self.listener)),
        fmt::format("--distributed_ip_and_port must name a free port of machine 0, and {} a file "
                    "with the same content on every machine, or on none",
                    kTokenFileVariable));
  } catch (const std::exception&) {
    throw std::runtime_error(fmt::format("machine 0 does not listen on {} (waited {} s)",
                                         to_string(self.listener),
                                         self.rendezvous_timeout.count()));
  }
}

CauseClient::CauseClient(const MachineInRun& self, const Call& call)
    : self_(self), connection_(call.descriptor) {
  const auto words = split_words(call.welcome, 2);
  const auto port = words ? parse_whole(words->front(), 1, 65535) : std::nullopt;
  if (!port) throw std::runtime_error("machine 0's dtool-trainer said: " + call.welcome);
  store_port_ = static_cast<std::uint16_t>(*port);
  host_of_machine_0_ = words->back();
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
  if (line == "well") {
    outcome_ = Outcome{};
  } else if (const auto cause = read_cause(line)) {
    outcome_ = Outcome{cause};
  }
}

void CauseClient::lose(const std::string& how) {
  Cause cause;
  cause.text = fmt::format("{} was lost: {}", machine_name(0, host_of_machine_0_), how);
  outcome_ = Outcome{cause};
}

}  // namespace

std::unique_ptr<CauseExchange> make_cause_client(const MachineInRun& self) {
  return std::make_unique<CauseClient>(self, call_machine_0(self));
}

std::unique_ptr<CauseExchange> join_exchange(const MachineInRun& self) {
  return self.machine == 0 ? make_cause_server(self) : make_cause_client(self);
}

}  // namespace dtool::trainer
