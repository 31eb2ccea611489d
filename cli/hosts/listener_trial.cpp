// SPDX-License-Identifier: MIT
// The trial of the listener: who reaches rank 0's address, and how far the clocks are apart.
#include "cli/hosts/check_facts.h"

#include <fmt/format.h>

#include <optional>

#include "cli/host_output.h"
#include "ssh/machine/encodings.h"
#include "ssh/remote.h"
#include "ssh/wire/check.h"

namespace dtool::cli {
namespace {

using std::chrono::duration;

/// Notes when each host's clock came. The host read it between its turn's begin and then.
class ClockAnswers : public AnswerCount {
 public:
  ClockAnswers(Console& console, const std::vector<ssh::Host>& hosts)
      : AnswerCount(console, hosts, "tried"), clocks_(hosts.size()) {}

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override {
    Clock& clock = clocks_[host];
    if (stream != ssh::Stream::out || clock.came) return;
    clock.reader.add(bytes);
    try {
      const auto frame = clock.reader.next();
      if (!frame) return;
      clock.came = std::chrono::steady_clock::now();
      clock.launcher_time =
          duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
      constexpr double kNanosecond = 1e-9;
      clock.host_time =
          static_cast<double>(host::open<host::HostClock>(*frame).nanoseconds) * kNanosecond;
    } catch (const host::BadMessage&) {
      clock.came = std::chrono::steady_clock::now();  // the answer as a whole tells why
    }
  }

  void on_result(std::size_t host, const ssh::HostResult& result) override {
    const auto began = std::chrono::steady_clock::now() - result.elapsed;
    Clock& clock = clocks_[host];
    if (clock.came) clock.round_trip = std::max(0.0, duration<double>(*clock.came - began).count());
    AnswerCount::on_result(host, result);
  }

  void tell(std::size_t host, TrialOfHost& trial) const {
    const Clock& clock = clocks_[host];
    if (clock.host_time <= 0) return;
    trial.clock_uncertainty = clock.round_trip / 2;
    trial.clock_offset = clock.host_time - (clock.launcher_time - trial.clock_uncertainty);
  }

 private:
  struct Clock {
    host::FrameReader reader;
    double host_time = 0;  ///< seconds since 1970, as launcher_time; 0: it did not tell
    double launcher_time = 0;
    double round_trip = 0;
    std::optional<std::chrono::steady_clock::time_point> came;
  };
  std::vector<Clock> clocks_;
};

constexpr std::chrono::seconds kReachLimit{5};

ssh::RunOptions within_half_a_minute() {
  ssh::RunOptions options;
  options.timeout = std::chrono::seconds(30);
  options.follows = ssh::Follows::more;
  return options;
}

/// Starts the listener; its process id, or 0.
std::int64_t start_listener(ssh::Remote& remote, const TrialPlan& plan, const std::string& token,
                            ListenerTrial& trial) {
  host::ListenRequest request;
  request.address = plan.address;
  request.port = plan.port;
  request.token = {token};
  request.machines = static_cast<std::int64_t>(remote.hosts().size());
  request.seconds = plan.listens.count();
  ssh::Events nobody;
  ssh::HostResult result =
      remote.run({{0, ssh::ask_host(request)}}, nobody, within_half_a_minute()).front();
  const auto reply = ssh::reply_in<host::ListenReply>(result);
  if (reply) {
    trial.hosts[0].interface = reply->interface;
    trial.listened = reply->pid > 1;
    if (trial.listened) return reply->pid;
  }
  trial.fault =
      fmt::format("cannot listen on port {}: {}", plan.port, reply ? reply->fault : result.error);
  trial.hint = "--distributed_ip_and_port auto takes a free port from 20000 to 31999";
  return 0;
}

/// Reads the result of one host's try.
void take_try(const ssh::HostResult& result, TrialOfHost& of_host) {
  of_host.fault = result.error;
  if (result.failure != ssh::Failure::none) return;
  try {
    // The clock stands before it.
    const auto reply = host::open<host::ReachReply>(ssh::read_frame(result, 1));
    of_host.interface = reply.interface;
    of_host.reached = reply.is_reached;
    of_host.fault = reply.fault;
  } catch (const host::BadMessage& error) {
    of_host.fault = error.what();
  }
  if (!of_host.reached && of_host.fault.empty()) of_host.fault = "it did not say why";
}

void connect_all(Console& console, ssh::Remote& remote, const TrialPlan& plan,
                 const std::string& token, ListenerTrial& trial) {
  std::vector<ssh::Task> tasks;
  for (const std::size_t host : plan.hosts) {
    host::ReachRequest request;
    if (trial.listened && host > 0) request.address = plan.address;
    request.port = plan.port;
    request.token = {token};
    request.place = static_cast<std::int64_t>(host);
    request.timeout_ms = std::chrono::milliseconds(kReachLimit).count();
    tasks.push_back({host, ssh::ask_host(request)});
  }
  ClockAnswers clocks(console, remote.hosts());
  const auto results = remote.run(std::move(tasks), clocks, within_half_a_minute());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::size_t host = plan.hosts[i];
    clocks.tell(host, trial.hosts[host]);
    if (trial.listened && host > 0) take_try(results[i], trial.hosts[host]);
  }
}

void end_listener(ssh::Remote& remote, std::int64_t process) {
  ssh::Events nobody;
  remote.run({{0, ssh::Command{fmt::format("kill {}", process)}}}, nobody, within_half_a_minute());
}

}  // namespace

ListenerTrial try_listener(Console& console, ssh::Remote& remote, const TrialPlan& plan) {
  ListenerTrial trial;
  trial.address = plan.address;
  trial.port = plan.port;
  trial.hosts.resize(remote.hosts().size());
  if (plan.hosts.empty()) return trial;
  const std::string token = ssh::random_hex(16);
  std::int64_t process = 0;
  if (!plan.address.empty()) process = start_listener(remote, plan, token, trial);
  connect_all(console, remote, plan, token, trial);
  if (process != 0) end_listener(remote, process);
  return trial;
}

}  // namespace dtool::cli
