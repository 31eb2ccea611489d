// Logs as they come from the hosts, shown on the console: for `dtool logs`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "cli/log_lines.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// Shows standard output as lines of the machines' logs; with --json it keeps them instead. What
/// comes on standard error is about the reading of the log.
class LogOutput : public ssh::Listener, protected LogLines {
 public:
  /// The remote's hosts are the run's machines in their order.
  LogOutput(Console& console, const killfiles::Killfile& run, Fold fold);

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override;
  void on_result(std::size_t host, const ssh::HostResult& result) override;

  /// When all have answered: shows what is held back.
  void finish();

  /// Why a host could not read its log.
  std::string complaint(std::size_t host) const;
  /// The first line that the bundled trainer said of the whole run, or nothing.
  const std::string& cause() const { return cause_; }
  /// With --json: the host's log.
  const std::string& text(std::size_t host) const { return texts_[host]; }

 protected:
  void write_out();
  const std::string& name(std::size_t host) const { return names_[host]; }

  Console& console_;

 private:
  void show(const std::vector<std::size_t>& machines, std::string_view line) override;
  std::string label(const std::vector<std::size_t>& machines) const;

  std::vector<std::string> names_;
  std::vector<std::string> labels_;  ///< one a machine, coloured
  std::vector<std::string> texts_;
  std::vector<std::string> complaints_;
  std::string cause_;
  std::string shown_;  ///< not yet written
};

}  // namespace dtool::cli
