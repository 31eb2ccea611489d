// SPDX-License-Identifier: MIT
#include "sync/pull.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "ssh/host_error.h"
#include "sync/staging.h"

namespace dtool::tree_sync {

namespace {

constexpr int kVanished = 24;  ///< rsync: some files vanished before they could be sent

constexpr int kPartly = 23;  ///< rsync: some files could not be sent
constexpr int kMostPasses = 5;

/// Before the next question whether what came has changed since: a checkpoint is written within
/// seconds, as a rule.
std::chrono::milliseconds pause_after(int pass) {
  return std::chrono::milliseconds(pass == 1 ? 0 : 700);
}

/// One host on its way: each pass of rsync brings what has changed since the one before.
struct Receiver {
  Receiver(std::size_t place, const Pull& pull) : index(place), staging(pull.destination) {}

  std::size_t index;  ///< the index in pulls
  Staging staging;
  int passes = 0;
  bool is_complete = false;              ///< rsync has run to its end
  std::vector<std::string> moving = {};  ///< files that had changed when they were last asked for
  /// The failure of a pass after which the others go on.
  std::optional<ssh::HostResult> fault = {};
  Sent sent = {};
  ProgressReader reader = {};
  RsyncProgress progress = {};
  std::string out_tail = {};
  std::string line = {};  ///< the last line of rsync's output, as far as it has come
  std::vector<std::string> skipped = {};
  std::string err = {};
};

/// Reads which names rsync leaves out.
void read_skipped(Receiver& slot, std::string_view bytes) {
  constexpr std::size_t kMostNames = 1000;
  constexpr std::array<std::string_view, 2> kLeftOut = {"ignoring unsafe symlink \"",
                                                        "skipping non-regular file \""};
  slot.line += bytes;
  for (std::size_t end = slot.line.find('\n'); end != slot.line.npos; end = slot.line.find('\n')) {
    std::string line = slot.line.substr(0, end);
    slot.line.erase(0, end + 1);
    for (const std::string_view words : kLeftOut) {
      if (!line.starts_with(words) || !line.ends_with('"')) continue;
      line = line.substr(words.size(), line.size() - words.size() - 1);
      const std::size_t target = line.find("\" -> \"");
      if (target != line.npos) line.replace(target, 6, " -> ");
      if (slot.skipped.size() < kMostNames) slot.skipped.push_back(line);
      break;
    }
  }
  const std::size_t progress = slot.line.rfind('\r');
  if (progress != slot.line.npos) slot.line.erase(0, progress);
}

class Pulling : public ssh::Events {
 public:
  Pulling(ssh::Remote& remote, const std::vector<Pull>& pulls, ssh::Events& events)
      : remote_(remote), pulls_(pulls), events_(events) {
    for (std::size_t i = 0; i < pulls.size(); ++i) slots_.try_emplace(pulls[i].host, i, pulls[i]);
  }

  ssh::Task first_task(const Pull& pull) {
    slots_.at(pull.host).staging.make();
    return task(pull, pull.source);
  }

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override {
    constexpr std::size_t kTail = 4096;  // rsync's figures at the end take 700 bytes
    constexpr std::size_t kMostErrors = 1 << 20;
    Receiver& slot = slots_.at(host);
    if (stream == ssh::Stream::err) {
      if (slot.err.size() < kMostErrors) slot.err += bytes;
      return;
    }
    slot.out_tail += bytes;
    if (slot.out_tail.size() > 2 * kTail) slot.out_tail.erase(0, slot.out_tail.size() - kTail);
    if (slot.passes > 0) return;
    read_skipped(slot, bytes);
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

  std::optional<ssh::NextTask> next_task(std::size_t host, const ssh::HostResult& result) override;
  void on_silence(const std::vector<std::size_t>& waiting) override { events_.on_silence(waiting); }
  void on_result(std::size_t host, const ssh::HostResult& result) override {
    events_.on_result(host, result);
  }
  void on_interrupt(const std::vector<std::size_t>& running) override {
    events_.on_interrupt(running);
  }

  /// Puts into their places what is known to be whole.
  Pulled finish(std::size_t host, ssh::HostResult result);

 private:
  ssh::Task task(const Pull& pull, const Source& source) const {
    const Link link = remote_.hosts().at(pull.host).is_local ? Link::local : Link::network;
    return {pull.host, pull_program(source, pull.destination, link, pull.silence)};
  }

  ssh::Remote& remote_;
  const std::vector<Pull>& pulls_;
  ssh::Events& events_;
  std::map<std::size_t, Receiver> slots_;
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
    result.fail(ssh::Failure::timed_out, "nothing came from it for too long",
                "see whether its disk answers; the same command goes on from here");
    return;
  }
  const std::string reason = complaint(result.err);
  // A file was made shorter while it was read: it is asked for again.
  if (result.exit_code == kPartly && reason.find("read errors mapping") != reason.npos) {
    result.exit_code = 0;
    return;
  }
  result.error = fmt::format("rsync failed with exit code {}{}{}", result.exit_code,
                             reason.empty() ? "" : ": ", reason);
  result.hint = hint_of_pull(result.exit_code, reason);
}

namespace {

std::string first_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNamed = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  return text + (names.size() > kMostNamed ? ", …" : "");
}

std::optional<ssh::NextTask> Pulling::next_task(std::size_t host, const ssh::HostResult& result) {
  Receiver& slot = slots_.at(host);
  ssh::HostResult ended = result;
  ended.err = std::exchange(slot.err, {});
  const std::string figures = std::exchange(slot.out_tail, {});
  if (++slot.passes == 1) {
    const Sent whole = read_sent(figures);
    slot.sent = whole.files > 0 ? whole : slot.progress.sent;
  }
  explain_pull(ended);
  // A file that has vanished since has no further pass.
  const bool is_partly = ended.failure == ssh::Failure::none && ended.exit_code == kPartly;
  if (!ended.ok() && (slot.passes == 1 || !is_partly)) slot.fault = ended;
  if (!ended.ok() && !is_partly) return std::nullopt;
  slot.moving = slot.staging.look();
  slot.is_complete = slot.moving.empty() || slot.passes == kMostPasses;
  if (slot.is_complete) return std::nullopt;
  if (slot.passes == kMostPasses - 1) slot.staging.remember(slot.moving);
  const Pull& pull = pulls_[slot.index];
  return ssh::NextTask{task(pull, {pull.source.folder, "", {}, slot.moving}),
                       pause_after(slot.passes)};
}

Pulled Pulling::finish(std::size_t host, ssh::HostResult result) {
  Receiver& slot = slots_.at(host);
  Pulled pulled{slot.fault.value_or(std::move(result)), slot.sent};
  pulled.skipped = std::move(slot.skipped);
  pulled.is_complete = slot.is_complete && !slot.fault;
  if (slot.passes == 0) explain_pull(pulled.result);
  if (!slot.is_complete) return pulled;
  if (!slot.fault) pulled.result.exit_code = 0;
  std::vector<std::string> left_out;
  for (const std::string& name : slot.moving)
    (slot.staging.cut_to_remembered(name) ? pulled.grown : left_out).push_back(name);
  try {
    const auto [other_kinds, foreign] = slot.staging.place(left_out, pulls_[slot.index].foreign);
    if ((!other_kinds.empty() || !foreign.empty()) && pulled.result.ok()) {
      pulled.has_foreign = !foreign.empty();
      pulled.result.fail(
          foreign.empty()
              ? fmt::format(
                    "something of another kind (file, link or folder) is in the place of {}",
                    first_of(other_kinds))
              : fmt::format("files on this machine were edited, or did not come from the host: {}",
                            first_of(foreign)),
          "move it away here, or name another folder");
    }
  } catch (const std::filesystem::filesystem_error& error) {
    pulled.result.fail(error.what());
  }
  if (!left_out.empty() && pulled.result.ok()) {
    pulled.result.fail(
        fmt::format("changed whenever it was read, and did not come: {}", first_of(left_out)),
        "the same command brings it when it is written");
  }
  return pulled;
}

}  // namespace

std::vector<Pulled> pull(ssh::Remote& remote, const std::vector<Pull>& pulls, ssh::Events& events) {
  Pulling pulling(remote, pulls, events);
  std::vector<ssh::Task> tasks;
  for (const Pull& each : pulls) tasks.push_back(pulling.first_task(each));
  ssh::RunOptions options;
  options.keep_output = ssh::KeepOutput::no;
  options.on_interrupt = ssh::OnInterrupt::leave;
  std::vector<ssh::HostResult> results = remote.run(std::move(tasks), pulling, options);
  std::vector<Pulled> answers;
  for (std::size_t i = 0; i < results.size(); ++i)
    answers.push_back(pulling.finish(pulls[i].host, std::move(results[i])));
  return answers;
}

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBefore = "# dtool fetched the outputs of the run ";
constexpr std::string_view kAfter = " into this folder: they are no code\n*\n";

std::string mark_of(const std::string& run_id) {
  return fmt::format("{}{}{}", kBefore, run_id, kAfter);
}

std::optional<std::string> text_of_mark(const fs::path& folder) {
  constexpr std::size_t kMost = 1000;
  std::error_code fault;
  if (!fs::is_regular_file(folder / kFetchedMark, fault)) return std::nullopt;  // a pipe would wait
  std::ifstream file(folder / kFetchedMark, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(kMost, '\0');
  file.read(text.data(), kMost);
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

bool has_one_entry(const fs::path& folder) {
  std::error_code fault;
  const fs::directory_iterator files(folder, fault);
  return !fault && std::distance(begin(files), end(files)) == 1;
}

}  // namespace

std::optional<std::string> fetched_run(const fs::path& folder) {
  const std::string text = text_of_mark(folder).value_or("");
  if (!text.starts_with(kBefore) || !text.ends_with(kAfter)) return std::nullopt;
  return text.substr(kBefore.size(), text.size() - kBefore.size() - kAfter.size());
}

bool has_only_half_a_mark(const fs::path& folder, const std::string& run_id) {
  const auto text = text_of_mark(folder);
  return text && has_one_entry(folder) && mark_of(run_id).starts_with(*text);
}

void mark_fetched(const fs::path& folder, const std::string& run_id) {
  // A mark that is written again is empty in between, and stays so on a full disk.
  if (fetched_run(folder) == run_id) return;
  const fs::path path = folder / kFetchedMark;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << mark_of(run_id) << std::flush;
  if (!file)
    throw std::runtime_error(
        fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
}

void remove_if_only_marked(const fs::path& folder) {
  if (!has_one_entry(folder) || !fetched_run(folder)) return;
  std::error_code fault;
  fs::remove(folder / kFetchedMark, fault);
  fs::remove(folder, fault);
}

}  // namespace dtool::tree_sync
