// SPDX-License-Identifier: MIT
// Shows the output of hosts: as it comes, with the host's name before each line, or gathered and
// folded.
#pragma once

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

  void on_result(std::size_t host, const ssh::HostResult& result) override;
  void on_silence(const std::vector<std::size_t>& waiting) override;
  void on_interrupt(const std::vector<std::size_t>& running) override;

 protected:
  Console& console_;
  const std::vector<ssh::Host>& hosts_;

 private:
  std::string doing_;
  std::size_t answered_ = 0;
};

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

 private:
  std::vector<std::string> outputs_;
};

}  // namespace dtool::cli
