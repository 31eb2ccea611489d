#include "cli/follow.h"

#include <fmt/format.h>

#include <deque>
#include <map>
#include <utility>

#include "cli/host_output.h"
#include "ssh/screen_job.h"
#include "ssh/script.h"

namespace dtool::cli {
namespace {

constexpr std::size_t kLastLines = 10;

/// How the trainer begins what it says of the whole run.
constexpr std::string_view kCausePrefix = "dtool-trainer: ";
constexpr std::size_t kLongestCause = 4096;

/// Keeps the last lines of each host, and shows the very last ones: of those that still run on a
/// terminal, and of each that has ended well for good.
class LastLines : public ssh::Listener {
 public:
  LastLines(Console& console, const std::vector<ssh::Host>& hosts,
            const std::vector<std::size_t>& which)
      : console_(console), which_(which), machines_(hosts.size()) {
    for (std::size_t i = 0; i < hosts.size(); ++i) machines_[i].name = ssh::to_string(hosts[i]);
  }

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override {
    if (stream == ssh::Stream::err) return;
    for (const char each : bytes) add(machines_[host], each);
    show();
  }

  void on_result(std::size_t host, const ssh::HostResult& result) override {
    Machine& machine = machines_[host];
    machine.has_ended = true;
    if (result.ok()) console_.note(last_line(machine));
    show();
  }

  void on_interrupt(const std::vector<std::size_t>&) override {
    console_.note("interrupted: the jobs go on by themselves");
  }

  std::string last_lines(std::size_t host) const {
    std::string text;
    for (const std::string& line : machines_[host].lines) text += "\n      " + line;
    return text;
  }

 private:
  struct Machine {
    std::string name;
    std::deque<std::string> lines;
    bool line_is_open = false;
    bool has_ended = false;
  };

  static void add(Machine& machine, char each) {
    if (each == '\n' ||
        each == '\r') {  // a progress bar draws its line again after a carriage return
      machine.line_is_open = false;
      return;
    }
    if (!machine.line_is_open) machine.lines.emplace_back();
    machine.line_is_open = true;
    machine.lines.back() += each;
    if (machine.lines.size() > kLastLines) machine.lines.pop_front();
  }

  static std::string last_line(const Machine& machine) {
    return fmt::format("{}: {}", machine.name, machine.lines.empty() ? "" : machine.lines.back());
  }

  void show() {
    std::vector<std::string> rows;
    for (const std::size_t host : which_) {
      if (!machines_[host].has_ended) rows.push_back(last_line(machines_[host]));
    }
    console_.live(rows);
  }

  Console& console_;
  const std::vector<std::size_t>& which_;
  std::vector<Machine> machines_;
};

std::vector<ssh::HostResult> follow(ssh::Remote& remote, const killfiles::Killfile& killfile,
                                    const std::vector<std::size_t>& which,
                                    ssh::Listener& listener) {
  std::vector<ssh::Task> tasks;
  for (const std::size_t i : which)
    tasks.push_back({i, ssh::follow_command(killfile.machines[i].state_folder, 0)});
  ssh::RunOptions options;
  options.keep_output = ssh::KeepOutput::no;
  options.on_interrupt = ssh::OnInterrupt::leave;
  return remote.run(std::move(tasks), listener, options);
}

/// Prints logs, on standard error with --json, and keeps to itself the answer that ends each. What
/// the trainer says of the whole run it says on every machine, word for word: shown once.
class LogOutput : public StreamedOutput {
 public:
  LogOutput(Console& console, const std::vector<ssh::Host>& hosts,
            std::vector<std::string> prefixes)
      : StreamedOutput(console, hosts, "ended", std::move(prefixes)),
        unfinished_lines_(hosts.size()) {}

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override {
    if (stream == ssh::Stream::err) return;
    std::string& line = unfinished_lines_[host];
    line += bytes;
    const std::size_t end = line.rfind('\n') + 1;
    if (end == 0 && line.size() < kLongestCause) return;
    pass_on(host, end == 0 ? line : line.substr(0, end));
    line.erase(0, end == 0 ? line.size() : end);
  }
  void on_result(std::size_t host, const ssh::HostResult& result) override {
    pass_on(host, std::exchange(unfinished_lines_[host], {}));
    StreamedOutput::on_result(host, result);
  }
  void on_interrupt(const std::vector<std::size_t>&) override {
    console_.note("interrupted: the run goes on by itself");
  }

  /// The first that the trainer said of the whole run, or nothing.
  const std::string& cause() const { return cause_; }

 private:
  /// Whole lines, less those that another machine has said.
  void pass_on(std::size_t host, std::string_view lines) {
    std::string text;
    while (!lines.empty()) {
      const std::string_view line = lines.substr(0, lines.find('\n') + 1);
      const std::string_view rest = line.empty() ? lines : line;
      lines.remove_prefix(rest.size());
      if (rest.starts_with(kCausePrefix)) {
        const std::string cause(rest.substr(0, rest.find('\n')));
        if (cause_.empty()) cause_ = cause.substr(kCausePrefix.size());
        const auto [at, is_new] = said_by_.try_emplace(cause, host);
        if (!is_new && at->second != host) continue;
      }
      text += rest;
    }
    if (!text.empty())
      StreamedOutput::on_output(host, console_.json() ? ssh::Stream::err : ssh::Stream::out, text);
  }

  std::string cause_;
  std::vector<std::string> unfinished_lines_;
  std::map<std::string, std::size_t> said_by_;
};

}  // namespace

std::vector<ssh::HostResult> follow_last_lines(Console& console, ssh::Remote& remote,
                                               const killfiles::Killfile& killfile,
                                               const std::vector<std::size_t>& which) {
  LastLines listener(console, remote.hosts(), which);
  auto results = follow(remote, killfile, which, listener);
  console.live({});
  for (std::size_t i = 0; i < results.size(); ++i) {
    ssh::HostResult& result = results[i];
    if (result.failure == ssh::Failure::none && result.exit_code != 0) {
      result.error = fmt::format("exit code {}; its last lines:{}", result.exit_code,
                                 listener.last_lines(which[i]));
    }
  }
  return results;
}

FollowedRun follow_logs(Console& console, ssh::Remote& remote,
                        const killfiles::Killfile& killfile) {
  std::vector<std::string> prefixes;
  std::vector<std::size_t> all;
  for (const killfiles::Machine& machine : killfile.machines) {
    prefixes.push_back(fmt::format("machine{}", machine.id));
    all.push_back(all.size());
  }
  LogOutput listener(console, remote.hosts(), prefixes);
  auto results = follow(remote, killfile, all, listener);
  return {std::move(results), listener.cause()};
}

}  // namespace dtool::cli
