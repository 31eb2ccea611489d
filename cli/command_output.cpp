// SPDX-License-Identifier: MIT
#include "cli/command_output.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/action.h"
#include "cli/host_output.h"
#include "cli/large_texts.h"
#include "ssh/host_error.h"

namespace dtool::cli {
namespace {

using ssh::Stream;

/// Keeps both streams of each host for --json.
class KeptOutput : public ssh::Events {
 public:
  explicit KeptOutput(std::size_t hosts) : texts_(2 * hosts) {}

  void on_output(std::size_t host, Stream stream, std::string_view bytes) override;
  std::string mark(std::size_t host, Stream stream) const {
    return texts_.mark(place(host, stream));
  }
  const LargeTexts& texts() const { return texts_; }

 private:
  static std::size_t place(std::size_t host, Stream stream) {
    return 2 * host + (stream == Stream::err ? 1 : 0);
  }
  LargeTexts texts_;
};

void KeptOutput::on_output(std::size_t host, Stream stream, std::string_view bytes) {
  const std::size_t out = place(host, Stream::out), err = place(host, Stream::err);
  if (texts_.size(out) + texts_.size(err) + bytes.size() > ssh::kMostHeld) {
    texts_.clear(out);
    texts_.clear(err);
    throw ssh::too_much_output();
  }
  texts_.add(place(host, stream), bytes);
}

/// The exit code of dtool, which that of the hosts' command may be. A host without an answer counts
/// as with ssh; one whose command was ended for another's failure does not count.
int passed_on(const std::string& wanted, const std::vector<ssh::HostResult>& results,
              const ssh::Remote& remote) {
  constexpr int kNoAnswer = 255;
  const int usual = exit_code_of(results, remote);
  if (wanted.empty() || usual == kInterrupted) return usual;
  std::vector<int> codes;
  for (const ssh::HostResult& each : results) {
    if (each.was_ended) continue;
    codes.push_back(each.failure == ssh::Failure::none ? each.exit_code : kNoAnswer);
  }
  const auto [least, most] = std::ranges::minmax(codes);
  return wanted == "max" || least == most ? most : kSomeFailed;
}

int show_document(Console& console, ssh::Remote& remote, const OutputOptions& options,
                  std::string_view command, const RunAll& run_all) {
  KeptOutput output(remote.hosts().size());
  const auto results = run_all(output);
  nlohmann::json hosts = nlohmann::json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    nlohmann::json host = to_json(results[i]);
    host["stdout"] = output.mark(i, Stream::out);
    host["stderr"] = output.mark(i, Stream::err);
    hosts.push_back(std::move(host));
  }
  const int exit_code = passed_on(options.exit_code, results, remote);
  console.document({{"command", command}, {"exit_code", exit_code}, {"hosts", hosts}},
                   output.texts());
  return exit_code;
}

}  // namespace

void add_output_options(Options& command, OutputOptions& options) {
  command.add_flag("-b,--fold", options.fold, "show identical outputs once, with their hosts");
  command
      .add_option("--exit_code", options.exit_code,
                  "pass on the command's exit code: the one of all hosts, or 1 if they differ "
                  "(remote); the largest one (max), as pdsh -S and clush -S do")
      .one_of({"remote", "max"})
      .type_name("remote|max");
}

int show_output(Console& console, ssh::Remote& remote, const OutputOptions& options,
                std::string_view command, const RunAll& run_all) {
  if (console.json()) return show_document(console, remote, options, command, run_all);
  std::vector<ssh::HostResult> results;
  if (options.fold) {
    FoldedOutput output(console, remote.hosts(), "answered");
    results = run_all(output);
    output.print();
  } else {
    StreamedOutput output(console, remote.hosts(), "answered");
    results = run_all(output);
  }
  report_failures(console, results, command);
  return passed_on(options.exit_code, results, remote);
}

}  // namespace dtool::cli
