#include "cli/run/listener_trial.h"

#include <fmt/format.h>

#include <cstdlib>

#include "cli/host_output.h"
#include "cli/run/check.h"
#include "cli/scripts.h"
#include "ssh/machine/random_hex.h"
#include "ssh/quote.h"
#include "ssh/script.h"
#include "ssh/scripts.h"

namespace dtool::cli {
namespace {

using std::chrono::duration;

/// Notes when each host's clock came. The host read it between its turn's begin and then.
class ClockListener : public ProgressListener {
 public:
  ClockListener(Console& console, const std::vector<ssh::Host>& hosts)
      : ProgressListener(console, hosts, "tried"), clocks_(hosts.size()) {}

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override {
    Clock& clock = clocks_[host];
    if (stream != ssh::Stream::out || clock.host_time != 0) return;
    clock.text += bytes;
    const std::size_t end = clock.text.rfind('\n');
    if (end == clock.text.npos) return;
    const auto answers = ssh::read_answers(clock.text.substr(0, end));
    if (const auto time = ssh::find_answer(answers, "clock")) {
      clock.host_time = std::strtod(time->c_str(), nullptr);
      clock.came = std::chrono::steady_clock::now();
      clock.launcher_time =
          duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    }
  }

  void on_result(std::size_t host, const ssh::HostResult& result) override {
    const auto began = std::chrono::steady_clock::now() - result.elapsed;
    clocks_[host].round_trip = std::max(0.0, duration<double>(clocks_[host].came - began).count());
    ProgressListener::on_result(host, result);
  }

  void tell(std::size_t host, TrialOfHost& trial) const {
    const Clock& clock = clocks_[host];
    if (clock.host_time <= 0) return;
    trial.clock_uncertainty = clock.round_trip / 2;
    trial.clock_offset = clock.host_time - (clock.launcher_time - trial.clock_uncertainty);
  }

 private:
  struct Clock {
    std::string text;
    double host_time = 0;  ///< seconds since 1970, as launcher_time
    double launcher_time = 0;
    double round_trip = 0;
    std::chrono::steady_clock::time_point came;
  };
  std::vector<Clock> clocks_;
};

/// By which both sides know each other: who asks says the one, and is told the other.
struct Words {
  std::string question = ssh::random_hex(16);
  std::string reply = ssh::random_hex(16);
};

std::string variables(const TrialPlan& plan, const Words& words, std::chrono::seconds limit,
                      std::string_view address) {
  return fmt::format("{}address={}\nport={}\nquestion={}\nreply={}\nseconds={}\n",
                     ssh::answer_function(), ssh::quote(address), plan.port, words.question,
                     words.reply, limit.count());
}

/// What listens, for hosts that have the one or the other.
std::string programs() {
  const auto program = [](std::string_view listen, std::string_view answer) {
    return ssh::quote(std::string(listen).append(answer));
  };
  return fmt::format("answer_with_perl={}\nanswer_with_python={}\n",
                     program(ssh::scripts::kListen_perl, scripts::kAnswer_perl),
                     program(ssh::scripts::kListen_python, scripts::kAnswer_python));
}

constexpr std::chrono::seconds kReachLimit{5};

/// What one task on machine 0 answered.
ssh::HostResult ask_first(ssh::Remote& remote, const std::string& script) {
  ssh::Listener nobody;
  ssh::RunOptions options;
  options.timeout = std::chrono::seconds(30);
  return remote.run({{0, ssh::bash(script)}}, nobody, options).front();
}

/// Starts the listener; its process id, or nothing.
std::string start_listener(ssh::Remote& remote, const TrialPlan& plan, const Words& words,
                           ListenerTrial& trial) {
  std::string script = variables(plan, words, plan.listens, plan.address) + programs();
  const ssh::HostResult result = ask_first(remote, script.append(scripts::kListen));
  const auto answers = ssh::read_answers(result.out);
  trial.hosts[0].interface = ssh::find_answer(answers, "interface").value_or("");
  if (const auto process = ssh::find_answer(answers, "listener")) {
    trial.listened = true;
    return *process;
  }
  if (answers.contains("no_tool")) {
    trial.not_possible = true;
    trial.fault = "not tried: neither perl nor python3 is there to listen with";
    trial.hint = "install one of them on the first host to have it tried";
    return "";
  }
  const auto fault = ssh::find_answer(answers, "fault");
  trial.fault =
      fmt::format("cannot listen on port {}: {}", plan.port,
                  fault ? *fault : (result.error.empty() ? words_of(result) : result.error));
  trial.hint = "--distributed_ip_and_port auto takes a free port from 20000 to 31999";
  return "";
}

void connect_all(Console& console, ssh::Remote& remote, const TrialPlan& plan, const Words& words,
                 ListenerTrial& trial) {
  std::vector<ssh::Task> tasks;
  for (const std::size_t host : plan.hosts) {
    const bool connects = trial.listened && host > 0;
    std::string script = variables(plan, words, kReachLimit, connects ? plan.address : "");
    tasks.push_back({host, ssh::bash(script.append(scripts::kReach))});
  }
  ClockListener clocks(console, remote.hosts());
  ssh::RunOptions options;
  options.timeout = std::chrono::seconds(30);
  const auto results = remote.run(std::move(tasks), clocks, options);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::size_t host = plan.hosts[i];
    TrialOfHost& of_host = trial.hosts[host];
    clocks.tell(host, of_host);
    if (!trial.listened || host == 0) continue;
    const auto answers = ssh::read_answers(results[i].out);
    of_host.interface = ssh::find_answer(answers, "interface").value_or("");
    of_host.reached = answers.contains("reached");
    if (of_host.reached) continue;
    const auto fault = ssh::find_answer(answers, "fault");
    of_host.fault =
        fault ? *fault : (results[i].error.empty() ? words_of(results[i]) : results[i].error);
    if (of_host.fault.empty()) of_host.fault = "it did not say why";
  }
}

}  // namespace

ListenerTrial try_listener(Console& console, ssh::Remote& remote, const TrialPlan& plan) {
  ListenerTrial trial;
  trial.address = plan.address;
  trial.port = plan.port;
  trial.hosts.resize(remote.hosts().size());
  if (plan.hosts.empty()) return trial;
  const Words words;
  std::string process;
  if (!plan.address.empty()) process = start_listener(remote, plan, words, trial);
  connect_all(console, remote, plan, words, trial);
  if (!process.empty()) ask_first(remote, fmt::format("kill {}", ssh::quote(process)));
  return trial;
}

}  // namespace dtool::cli
