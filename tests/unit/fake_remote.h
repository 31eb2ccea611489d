// SPDX-License-Identifier: MIT
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

#include "ssh/host.h"
#include "ssh/remote.h"
#include "ssh/wire/protocol.h"

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

inline host::Frame frame_of(const std::string& input) {
  host::FrameReader reader;
  reader.add(input);
  return reader.next().value();
}

/// The request to dtool-host that a command's input holds.
template <typename Request>
Request request_of(const std::string& input) {
  return host::open<Request>(frame_of(input));
}

/// `result` as that host's.
inline ssh::HostResult from(const std::string& host, ssh::HostResult result) {
  result.host = ssh::parse_host(host);
  return result;
}

struct FakeRemote : ssh::Remote {
  /// `patterns` as --runs_on has them.
  explicit FakeRemote(const std::string& patterns) : FakeRemote(ssh::parse_hosts(patterns, {})) {}
  explicit FakeRemote(std::vector<ssh::Host> hosts) : names(std::move(hosts)) {}

  const std::vector<ssh::Host>& hosts() const override { return names; }
  bool interrupted() const override { return is_interrupted; }

  /// Tasks are answered in their order, each host's further ones before the next host's.
  std::vector<ssh::HostResult> run(std::vector<ssh::Task> tasks, ssh::Events& events,
                                   const ssh::RunOptions& options) override {
    const std::size_t round = rounds.size();
    std::vector<ssh::HostResult> results;
    for (ssh::Task& task : tasks) {
      const std::size_t host = task.host;
      if (interrupt_before == host && !is_interrupted) {
        is_interrupted = true;
        events.on_interrupt({});
      }
      ssh::HostResult result = answer(std::move(task), round, events, options);
      auto next = is_interrupted ? std::nullopt : events.next_task(host, result);
      for (std::size_t step = round + 1; next; ++step) {
        result = answer(std::move(next->task.value()), step, events, options);
        next = events.next_task(host, result);
      }
      events.on_result(host, result);
      results.push_back(std::move(result));
    }
    if (rounds.size() == round) add_round(options);
    return results;
  }

  /// The script or input that `host` was sent in that round; empty where it was not asked.
  std::string input_of(std::size_t host, std::size_t round = 0) const {
    for (const ssh::Task& task : rounds.at(round)) {
      if (task.host == host) return std::get<ssh::Command>(task.step).input;
    }
    return "";
  }

  /// The command line, likewise.
  std::string line_of(std::size_t host, std::size_t round = 0) const {
    for (const ssh::Task& task : rounds.at(round)) {
      if (task.host == host) return std::get<ssh::Command>(task.step).line;
    }
    return "";
  }

  std::vector<ssh::Host> names;
  using Answers = std::map<std::size_t, ssh::HostResult>;
  Answers answers;                              ///< a host that is not here says nothing, well
  std::map<std::size_t, Answers> answers_to;    ///< that call or step, by its place among all
  std::optional<std::size_t> interrupt_before;  ///< SIGINT comes before this host's turn
  bool is_interrupted = false;
  /// What it was asked, call by call, and within a call step by step of its hosts.
  std::vector<std::vector<ssh::Task>> rounds;
  std::vector<ssh::RunOptions> asked_options;  ///< of the call, round by round

 private:
  void add_round(const ssh::RunOptions& options) {
    rounds.emplace_back();
    asked_options.push_back(options);
  }

  ssh::HostResult answer(ssh::Task task, std::size_t round, ssh::Events& events,
                         const ssh::RunOptions& options) {
    const std::size_t host = task.host;
    const ssh::KeepOutput keep = task.options ? task.options->keep_output : options.keep_output;
    while (rounds.size() <= round) add_round(options);
    rounds[round].push_back(std::move(task));
    ssh::HostResult result;
    const Answers& said = answers_to.contains(round) ? answers_to.at(round) : answers;
    const auto found = said.find(host);
    if (is_interrupted) {
      result = failed(ssh::Failure::not_started, "interrupted before its turn");
    } else {
      result = found == said.end() ? answered("") : found->second;
    }
    result.host = names.at(host);
    events.on_output(host, ssh::Stream::out, result.out);
    events.on_output(host, ssh::Stream::err, result.err);
    if (keep == ssh::KeepOutput::no) result.out = result.err = "";
    return result;
  }
};

}  // namespace dtool::tests
