// SPDX-License-Identifier: MIT
// Shows the output of hosts: as it comes, with the host's name before each line, or gathered and
// folded.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/console.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// Shows how many hosts have answered, and what the first Ctrl-C does.
class AnswerCount : public ssh::Events {
 public:
  AnswerCount(Console& console, const std::vector<ssh::Host>& hosts, std::string doing)
      : console_(console), hosts_(hosts), doing_(std::move(doing)) {}

  /// What a first Ctrl-C does, so that it is told.
  void set_on_interrupt(ssh::OnInterrupt what) { on_interrupt_ = what; }

  void on_result(std::size_t host, const ssh::HostResult& result) override;
  void on_silence(const std::vector<std::size_t>& waiting) override;
  void on_interrupt(const std::vector<std::size_t>& running) override;

 protected:
  Console& console_;
  const std::vector<ssh::Host>& hosts_;

 private:
  std::string doing_;
  std::size_t answered_ = 0;
  ssh::OnInterrupt on_interrupt_ = ssh::OnInterrupt::finish;
};

/// The results of hosts' parts in a step, each of which has one.
template <typename Parts>
std::vector<ssh::HostResult> results_of(const Parts& parts) {
  std::vector<ssh::HostResult> results;
  for (const auto& each : parts) results.push_back(each.result);
  return results;
}

/// `, waiting for h3`: for the end of a line of progress. Empty if there are too many to name.
std::string waiting_for(const std::vector<ssh::Host>& hosts,
                        const std::vector<std::size_t>& waiting);

/// Prints whole lines, each after `prefix: `; standard error's lines on standard error.
class StreamedOutput : public AnswerCount {
 public:
  /// `prefixes`: one per host; empty: the hosts' names.
  StreamedOutput(Console& console, const std::vector<ssh::Host>& hosts, std::string doing,
                 std::vector<std::string> prefixes = {});

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override;
  void on_result(std::size_t host, const ssh::HostResult& result) override;

 private:
  void print(std::size_t host, ssh::Stream stream, std::string_view lines);
  std::string& unfinished(std::size_t host, ssh::Stream stream);

  std::vector<std::string> prefixes_;
  std::vector<std::string> unfinished_;  ///< the incomplete last line, two streams per host
};

/// Gathers both streams of each host in the order of arrival; print() shows identical outputs once.
class FoldedOutput : public AnswerCount {
 public:
  FoldedOutput(Console& console, const std::vector<ssh::Host>& hosts, std::string doing)
      : AnswerCount(console, hosts, std::move(doing)), outputs_(hosts.size()) {}

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override;
  /// Hosts without output are left out.
  void print();
  /// Shows the commonest output, and how each other one differs from it, as found by the program
  /// diff. Of hosts without output those are left out that failed.
  void print_differences(const std::vector<ssh::HostResult>& results);

 private:
  /// Hosts that said the same.
  struct Group {
    std::string output;  ///< ends with its last line's end
    std::vector<ssh::Host> hosts;

    /// `h[1-2,4] (3)`.
    std::string name() const;
  };
  std::vector<Group> groups(const std::vector<ssh::HostResult>& results) const;
  void print(const Group& group);
  void pass_on(std::string_view text);

  std::vector<std::string> outputs_;
};

// Tells a person which hosts failed: each failure once, with the hosts that have it.

/// `exit code 3`, `killed by signal 9`, or why there was no answer.
std::string describe(const ssh::HostResult& result);

/// Reports the hosts that failed and why, and folds equal failures. `doing` is part of the
/// headline: `2 of 8 hosts failed: doing`, or `failed: doing` if there is only one host. Hosts that
/// were ended for another's failure are not counted there. Prints nothing if no host failed.
/// Returns the number of all hosts that did not end well.
std::size_t report_failures(Console& console, const std::vector<ssh::HostResult>& results,
                            std::string_view doing);

/// One host's result in the form of every `--json`: host, exit_code, failure, error, hint,
/// elapsed_s.
nlohmann::json to_json(const ssh::HostResult& result);

/// A hint with `hosts` in place of ssh::kHostsInHint, quoted for a shell.
std::string hint_for(std::string hint, const std::string& hosts);

/// Host names as a folded pattern.
std::string fold_hosts(const std::vector<ssh::Host>& hosts);

/// The same for a short line: if there are many patterns, the first ones and the number of hosts.
std::string fold_hosts_in_short(const std::vector<ssh::Host>& hosts);

/// The exit code of a command: interrupted, some failed, or all well.
int exit_code_of(const std::vector<ssh::HostResult>& results, const ssh::Remote& remote);

}  // namespace dtool::cli
