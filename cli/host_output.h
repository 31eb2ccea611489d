// What hosts say, shown as it comes with the host's name before each line, or gathered and folded.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/console.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// Tells how many hosts have answered, and what the first Ctrl-C means.
class ProgressListener : public ssh::Listener {
 public:
  ProgressListener(Console& console, const std::vector<ssh::Host>& hosts, std::string doing)
      : console_(console), hosts_(hosts), doing_(std::move(doing)) {}

  void on_result(std::size_t host, const ssh::HostResult& result) override;
  void on_interrupt(const std::vector<std::size_t>& running) override;

 protected:
  Console& console_;
  const std::vector<ssh::Host>& hosts_;

 private:
  std::string doing_;
  std::size_t answered_ = 0;
};

/// Whole lines, each behind `prefix: `, standard error's on standard error.
class StreamedOutput : public ProgressListener {
 public:
  /// `prefixes`: one a host; empty: the host's name.
  StreamedOutput(Console& console, const std::vector<ssh::Host>& hosts, std::string doing,
                 std::vector<std::string> prefixes = {});

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override;
  void on_result(std::size_t host, const ssh::HostResult& result) override;

 private:
  void print(std::size_t host, ssh::Stream stream, std::string_view lines);
  std::string& unfinished(std::size_t host, ssh::Stream stream);

  std::vector<std::string> prefixes_;
  std::vector<std::string> unfinished_;  ///< the last line so far, two streams a host
};

/// Both streams of each host in the order of arrival; identical ones shown once by print().
class FoldedOutput : public ProgressListener {
 public:
  FoldedOutput(Console& console, const std::vector<ssh::Host>& hosts, std::string doing)
      : ProgressListener(console, hosts, std::move(doing)), outputs_(hosts.size()) {}

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override;
  /// Hosts without a word are left out.
  void print();

 private:
  std::vector<std::string> outputs_;
};

}  // namespace dtool::cli
