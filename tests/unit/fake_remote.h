// Hosts without a network: a Remote that remembers what it was asked and answers what a test wrote
// down.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ssh/host_pattern.h"
#include "ssh/remote.h"

namespace dtool::tests {

/// A host that answered.
inline ssh::HostResult answered(std::string out, int exit_code = 0, std::string err = "") {
  ssh::HostResult result;
  result.exit_code = exit_code;
  result.out = std::move(out);
  result.err = std::move(err);
  return result;
}

/// A host that did not.
inline ssh::HostResult failed(ssh::Failure failure, std::string error, std::string hint = "") {
  ssh::HostResult result;
  result.failure = failure;
  result.error = std::move(error);
  result.hint = std::move(hint);
  return result;
}

/// `result` as that host's.
inline ssh::HostResult from(const std::string& host, ssh::HostResult result) {
  result.host = ssh::parse_host(host);
  return result;
}

struct FakeRemote : ssh::Remote {
  /// `patterns` as --runs_on has them.
  explicit FakeRemote(const std::string& patterns) : names(ssh::parse_hosts(patterns, {})) {}

  const std::vector<ssh::Host>& hosts() const override { return names; }
  bool interrupted() const override { return is_interrupted; }

  /// Tasks are answered in their order.
  std::vector<ssh::HostResult> run(std::vector<ssh::Task> tasks, ssh::Listener& listener,
                                   const ssh::RunOptions& options) override {
    asked_options.push_back(options);
    std::vector<ssh::HostResult> results;
    for (const ssh::Task& task : tasks) {
      if (interrupt_before == task.host && !is_interrupted) {
        is_interrupted = true;
        listener.on_interrupt({});
      }
      results.push_back(answer(task));
      ssh::HostResult& result = results.back();
      result.host = names.at(task.host);
      listener.on_output(task.host, ssh::Stream::out, result.out);
      listener.on_output(task.host, ssh::Stream::err, result.err);
      if (options.keep_output == ssh::KeepOutput::no) result.out = result.err = "";
      listener.on_result(task.host, result);
    }
    rounds.push_back(std::move(tasks));
    return results;
  }

  /// The script or input that `host` was sent in that round; empty where it was not asked.
  std::string input_of(std::size_t host, std::size_t round = 0) const {
    for (const ssh::Task& task : rounds.at(round)) {
      if (task.host == host) return std::get<ssh::Command>(task.step).input;
    }
    return "";
  }

  std::vector<ssh::Host> names;
  std::map<std::size_t, ssh::HostResult> answers;  ///< a host that is not here says nothing, well
  std::optional<std::size_t> interrupt_before;     ///< SIGINT comes before this host's turn
  bool is_interrupted = false;
  std::vector<std::vector<ssh::Task>> rounds;  ///< what it was asked, call by call
  std::vector<ssh::RunOptions> asked_options;  ///< how, call by call

 private:
  ssh::HostResult answer(const ssh::Task& task) const {
    if (is_interrupted) {
      return failed(ssh::Failure::not_started, "interrupted before its turn");
    }
    const auto found = answers.find(task.host);
    return found == answers.end() ? answered("") : found->second;
  }
};

}  // namespace dtool::tests
