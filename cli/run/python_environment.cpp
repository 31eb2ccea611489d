// SPDX-License-Identifier: MIT
#include "cli/run/python_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "cli/failures.h"
#include "cli/host_output.h"
#include "cli/run/trainer_bundle.h"
#include "cli/run/tree_push.h"
#include "cli/run/wheels.h"
#include "cli/terminal_text.h"
#include "ssh/host/protocol.h"
#include "ssh/host_request.h"

namespace dtool::cli {
namespace {

void fail(ssh::HostResult& result, std::string error, std::string hint = "") {
  result.failure = ssh::Failure::not_started;
  result.error = std::move(error);
  result.hint = std::move(hint);
}

/// A host's answer; meaningful if its result is ok.
struct Answer {
  ssh::HostResult result;
  host::PythonReply reply;
};

/// Handles the answers of the hosts in one call of ask.
class Asking : public AnswerCount {
 public:
  Asking(Console& console, const std::vector<ssh::Host>& hosts, std::string doing)
      : AnswerCount(console, hosts, std::move(doing)), answers_(hosts.size()) {}

  void on_result(std::size_t host, const ssh::HostResult& result) override {
    Answer& answer = answers_[host];
    answer.result = result;
    try {
      if (result.ok()) answer.reply = ssh::read_reply<host::PythonReply>(result);
    } catch (const host::BadMessage& error) {
      fail(answer.result, fmt::format("it cannot say which Python it has: {}", error.what()));
    }
    AnswerCount::on_result(host, result);
  }

  std::vector<Answer> take_all() { return std::move(answers_); }

 private:
  std::vector<Answer> answers_;
};

std::vector<Answer> ask(Console& console, ssh::Remote& remote, const std::string& doing,
                        const host::PythonRequest& request,
                        std::optional<std::chrono::seconds> timeout) {
  std::vector<ssh::Task> tasks;
  for (std::size_t i = 0; i < remote.hosts().size(); ++i)
    tasks.push_back({i, ssh::ask_host(request)});
  Asking asking(console, remote.hosts(), doing);
  ssh::RunOptions options;
  if (timeout) options.timeout = *timeout;
  remote.run(std::move(tasks), asking, options);
  console.progress("");
  return asking.take_all();
}

std::vector<ssh::HostResult> results_of(const std::vector<Answer>& answers) {
  std::vector<ssh::HostResult> results;
  for (const Answer& each : answers) results.push_back(each.result);
  return results;
}

/// Whether a word of a host's can be a part of `3.11`, `x86_64` and the like.
bool is_plain(std::string_view word) {
  return !word.empty() && word.size() < 32 && std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_';
  });
}

void judge_python(Answer& answer) {
  const host::PythonReply& reply = answer.reply;
  if (!answer.result.ok()) return;
  if (reply.version.empty()) {
    fail(answer.result, "--environment: there is no python3 of 3.8 or later",
         "dtool command --command 'apt-get install -y python3' installs it on Debian");
  } else if (!is_plain(reply.version) || !is_plain(reply.processor)) {
    fail(answer.result, "its answer cannot be read: what it says of its Python");
  } else if (glibc_of(reply.libc) == 0) {
    fail(answer.result, "--environment: its libc is not glibc, for which wheels are made");
  }
}

/// What most hosts have; the others fail, since one environment cannot serve both.
HostPython agree(std::vector<Answer>& answers) {
  std::map<std::pair<std::string, std::string>, std::size_t> counts;
  for (const Answer& each : answers)
    if (each.result.ok()) ++counts[{each.reply.version, each.reply.processor}];
  if (counts.empty()) return {};
  const auto& [version, processor] =
      std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; })->first;
  HostPython python{version, processor, 0};
  for (Answer& each : answers) {
    if (!each.result.ok()) continue;
    const host::PythonReply& reply = each.reply;
    if (reply.version != version || reply.processor != processor) {
      fail(each.result,
           fmt::format("--environment: it has Python {} on {}, and other hosts {} on {}",
                       reply.version, reply.processor, version, processor),
           "the same Python belongs on all hosts of a run");
      continue;
    }
    const int glibc = glibc_of(reply.libc);
    python.glibc = python.glibc == 0 ? glibc : std::min(python.glibc, glibc);
  }
  return python;
}

}  // namespace

std::string supply_environment(Console& console, ssh::Remote& remote,
                               const std::filesystem::path& file, const JudgeStep& judge) {
  constexpr std::chrono::seconds kForAnswer{60};
  std::vector<Answer> answers = ask(console, remote, "looked at", {}, kForAnswer);
  std::ranges::for_each(answers, judge_python);
  const HostPython python = agree(answers);
  if (!judge(results_of(answers), "asking for Python")) return {};
  const Wheels wheels = resolve_wheels(console, file, python);
  const std::string folder = "~/.dtool/environments/" + wheels.hash;
  answers = ask(console, remote, "asked for the environment", {wheels.hash, false}, kForAnswer);
  if (!judge(results_of(answers), "asking for the environment")) return {};
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (!answers[i].reply.is_built) places.push_back(i);
  if (!places.empty()) {
    if (!judge(send_to_store(console, remote, wheels.tree, "the Python packages",
                             folder + "/wheels", places),
               "sending the Python packages"))
      return {};
    answers = ask(console, remote, "have the environment", {wheels.hash, true}, std::nullopt);
    for (Answer& each : answers) {
      if (!each.result.ok() || each.reply.is_built) continue;
      fail(each.result, fmt::format("--environment: it cannot be built: {}",
                                    each.reply.fault.empty() ? "it is not whole"
                                                             : without_controls(each.reply.fault)));
    }
    if (!judge(results_of(answers), "building the environment")) return {};
    std::vector<ssh::Host> built;
    for (const std::size_t place : places) built.push_back(remote.hosts()[place]);
    console.note(
        fmt::format("built {} on {}", without_controls(file.string()), fold_hosts_in_short(built)));
  }
  return folder + "/venv";
}

}  // namespace dtool::cli
