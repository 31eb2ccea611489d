// SPDX-License-Identifier: MIT
#include "sync/pull.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <utility>

#include "ssh/host_error.h"

namespace dtool::tree_sync {
namespace {

constexpr int kVanished = 24;  ///< rsync: some files vanished before they could be sent

/// One host's output, as far as it is needed.
struct HostOutput {
  std::size_t index = 0;  ///< in pulls
  ProgressReader reader = {};
  RsyncProgress progress = {};
  std::string out_tail = {};
  std::string err = {};
};

class PullOutput : public ssh::Events {
 public:
  PullOutput(const std::vector<Pull>& pulls, ssh::Events& events) : pulls_(pulls), events_(events) {
    for (std::size_t i = 0; i < pulls.size(); ++i) slots_[pulls[i].host].index = i;
  }

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override {
    constexpr std::size_t kTail = 4096;  // rsync's figures at the end take 700 bytes
    constexpr std::size_t kMostErrors = 1 << 20;
    HostOutput& slot = slots_.at(host);
    if (stream == ssh::Stream::err) {
      if (slot.err.size() < kMostErrors) slot.err += bytes;
      return;
    }
    slot.out_tail += bytes;
    if (slot.out_tail.size() > 2 * kTail) slot.out_tail.erase(0, slot.out_tail.size() - kTail);
    slot.progress = slot.reader.add(bytes);
    const auto& [sent, fraction] = slot.progress;
    ssh::Transferred progress{sent.bytes};
    // If all files so far were here already, the total is not known before the last one.
    if (fraction == 1 || (fraction > 0 && sent.bytes > 0))
      progress.all = static_cast<std::uint64_t>(sent.bytes / fraction);
    events_.on_progress(host, progress);
    const auto& most = pulls_[slot.index].most;
    if (most && slot.progress.sent.bytes > *most)
      throw ssh::HostError(ssh::Failure::local_program, "more came than is allowed (--max_gb)",
                           "allow more, or name with --only what is to come");
  }

  void on_result(std::size_t host, const ssh::HostResult& result) override {
    events_.on_result(host, result);
  }
  void on_interrupt(const std::vector<std::size_t>& running) override {
    events_.on_interrupt(running);
  }

  const HostOutput& slot(std::size_t host) const { return slots_.at(host); }

 private:
  const std::vector<Pull>& pulls_;
  ssh::Events& events_;
  std::map<std::size_t, HostOutput> slots_;
};

/// Words of rsync's that have a known mend. The receiver is here.
struct PullMend {
  std::string_view side;
  std::string_view words;
  std::string_view hint;
};
constexpr std::array kPullMends = {
    PullMend{"", "protocol version mismatch",
             "the rsync there prints something of its own first; see what `type rsync` says there"},
    PullMend{"", "No space left on device",
             "free some space on this machine, or name a folder on another disk; the same command "
             "goes on from here"},
    PullMend{"", "Disk quota exceeded",
             "free some space on this machine; the same command goes on"},
    PullMend{"[sender]", "Permission denied", "the user on the host must be allowed to read it"},
    PullMend{"", "Permission denied", "you must be allowed to write into the folder here"},
    PullMend{"", "Read-only file system", "name a folder on a file system that can be written"},
};

std::string hint_of_pull(int exit_code, std::string_view reason) {
  if (exit_code == 127) return "apt-get install rsync";
  for (const PullMend& mend : kPullMends) {
    if (reason.find(mend.side) != reason.npos && reason.find(mend.words) != reason.npos)
      return std::string(mend.hint);
  }
  const bool broke_off = exit_code == 10 || exit_code == 12 || exit_code == 13 || exit_code == 30;
  return broke_off ? "the transfer broke off; the same command goes on from here" : "";
}

}  // namespace

void explain_pull(ssh::HostResult& result) {
  if (result.failure == ssh::Failure::local_program && result.hint.empty()) {
    result.hint = "apt-get install rsync";
    return;
  }
  if (result.failure == ssh::Failure::connection_lost && result.hint.empty())
    result.hint = "the same command goes on from here";
  if (result.failure != ssh::Failure::none || result.exit_code == 0) return;
  if (result.exit_code == kVanished) {
    result.exit_code = 0;
    return;
  }
  if (result.exit_code == kTimedOut) {
    result.failure = ssh::Failure::timed_out;
    result.error = "nothing came from it for too long (--timeout)";
    result.hint = "see whether its disk answers; the same command goes on from here";
    return;
  }
  const std::string reason = complaint(result.err);
  result.error = fmt::format("rsync failed with exit code {}{}{}", result.exit_code,
                             reason.empty() ? "" : ": ", reason);
  result.hint = hint_of_pull(result.exit_code, reason);
}

std::vector<Pulled> pull(ssh::Remote& remote, const std::vector<Pull>& pulls, ssh::Events& events) {
  std::vector<ssh::Task> tasks;
  for (const Pull& each : pulls) {
    const Link link = remote.hosts().at(each.host).is_local ? Link::local : Link::network;
    tasks.push_back({each.host, pull_program(each.source, each.destination, link, each.silence)});
  }
  PullOutput output(pulls, events);
  ssh::RunOptions options;
  options.keep_output = ssh::KeepOutput::no;
  options.on_interrupt = ssh::OnInterrupt::leave;
  std::vector<ssh::HostResult> results = remote.run(std::move(tasks), output, options);
  std::vector<Pulled> answers;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const HostOutput& slot = output.slot(pulls[i].host);
    ssh::HostResult& result = results[i];
    result.err = slot.err;
    explain_pull(result);
    const Sent whole = read_sent(slot.out_tail);
    answers.push_back({std::move(result), whole.files > 0 ? whole : slot.progress.sent});
  }
  return answers;
}

}  // namespace dtool::tree_sync
