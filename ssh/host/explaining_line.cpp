// SPDX-License-Identifier: MIT
#include "ssh/host/explaining_line.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <utility>

#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

constexpr std::size_t kLongestLine = 500;

// Behind the blanks that a line begins with.
constexpr std::array<std::string_view, 29> kEmptyBeginnings = {
    "For simplicity, JAX has removed its internal frames",
    "The stack trace below excludes JAX-internal frames",
    "The preceding is the original exception that occurred",
    "The above exception was the direct cause of",
    "During handling of the above exception",
    "CUDA kernel errors might be asynchronously reported",
    "For debugging consider passing CUDA_LAUNCH_BLOCKING",
    "Compile with `TORCH_USE_CUDA_DSA`",
    "Search for `cuda",
    "Set TORCH",
    "Set the environment variable HYDRA_FULL_ERROR",
    "note: run with `RUST_BACKTRACE",
    "Exception raised from ",
    "frame #",
    "terminate called ",
    "Fatal Python error: Aborted",
    "Extension modules: ",
    "Thread 0x",
    "Current thread 0x",
    "File \"",
    "warnings.warn(",
    "Aborted (core dumped)",
    "wandb: ",
    "[notice] ",
    "[W",
    "W0",
    "W1",
    "I0",
    "I1"};

constexpr std::array<std::string_view, 5> kEmptyParts = {
    "torch.distributed.elastic", "torch/distributed/elastic",
    "torch.distributed.run:", "torch/distributed/run.py", "closing signal SIG"};

constexpr std::array<std::string_view, 20> kVictims = {
    "closed by peer",
    "closed by remote",
    "reset by peer",
    "Broken pipe",
    "remote process exited",
    "ncclRemoteError",
    "NCCL communicator was aborted",
    "Watchdog caught collective operation timeout",
    "watchdog thread terminated with exception",
    "ProcessGroupNCCL's watchdog got stuck",
    "Connection was likely closed",
    "Application timeout caused pair closure",
    "Timed out waiting for clients",
    "clients joined",
    "for recv operation to complete",
    "for send operation to complete",
    "client socket has timed out",
    "stopped sending heartbeats",
    "another task died",
    "Barrier timed out"};

bool has_part(std::string_view line, std::string_view part) {
  return line.find(part) != line.npos;
}

/// Without `[rank3]: `, which PyTorch writes before the lines of a traceback.
std::string_view without_rank(std::string_view line) {
  constexpr std::string_view kRank = "[rank";
  if (!line.starts_with(kRank)) return line;
  const std::size_t end = line.find("]:");
  if (end == line.npos) return line;
  line.remove_prefix(end + 2);
  if (line.starts_with(' ')) line.remove_prefix(1);
  return line;
}

/// `train.py:3: UserWarning: …`; a warning that was raised has no place before it.
bool is_warning(std::string_view line) {
  const std::size_t at = line.find("Warning: ");
  if (at == line.npos) return false;
  const std::size_t blank = line.rfind(' ', at);
  return blank != line.npos && blank > 0 && line[blank - 1] == ':';
}

bool explains_nothing(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  // A rule. What is not ASCII may be a letter.
  const auto is_letter = [](unsigned char each) { return each > 127 || std::isalnum(each) != 0; };
  if (std::ranges::none_of(line, is_letter)) return true;
  return is_warning(line) ||
         std::ranges::any_of(kEmptyBeginnings, [&](auto each) { return line.starts_with(each); }) ||
         std::ranges::any_of(kEmptyParts, [&](auto each) { return has_part(line, each); });
}

/// Goes through the lines of an output, and keeps those that may be its explanation.
class Explaining {
 public:
  void take(std::string_view whole) {
    const std::string_view line = without_rank(whole);
    if (line.find_first_not_of(' ') == line.npos) return;
    last_ = line;
    if (is_over_) return hear_root_cause(line);
    if (has_part(line, "errors.ChildFailedError:")) {
      is_over_ = true;  // the summary of PyTorch's launcher follows
    } else if (line.starts_with("Exception ignored in")) {
      is_ignored_ = true;
    } else if (line.ends_with("Traceback (most recent call last):")) {
      is_in_traceback_ = true;
    } else if (is_in_traceback_ && (line.starts_with(' ') || explains_nothing(line))) {
      return;
    } else if (std::exchange(is_in_traceback_, false) && std::exchange(is_ignored_, false)) {
      return;
    } else if (!line.starts_with("subprocess.CalledProcessError:") && !explains_nothing(line)) {
      explanation_ = line;
      if (!is_exception(line) || marks_a_victim(line)) return;
      exception_ = line;
      exceptions_[std::string(whole.substr(0, whole.size() - line.size()))] = line;
    }
  }

  std::string_view found() const {
    // Several ranks may have written there.
    const auto of_root = exceptions_.find(root_);
    if (of_root != exceptions_.end()) return of_root->second;
    if (is_over_ && !exception_.empty()) return exception_;
    return explanation_.empty() ? last_ : explanation_;
  }

 private:
  /// `  rank      : 1 (local_rank: 1)`: the last of these is of the rank that failed first.
  void hear_root_cause(std::string_view line) {
    const std::string_view name = cut_word(line);
    if (name == "rank" && cut_word(line) == ":")
      root_ = "[rank" + std::string(cut_word(line)) + "]: ";
  }

  std::string_view last_;
  std::string_view explanation_;
  std::string_view exception_;  ///< the last exception that is no victim's
  /// The last exception that is no victim's, behind the mark of each rank.
  std::map<std::string, std::string_view> exceptions_;
  std::string root_ = "none";  ///< mark of the rank that failed first
  bool is_in_traceback_ = false;
  bool is_ignored_ = false;  ///< the traceback that comes
  bool is_over_ = false;
};

}  // namespace

bool is_exception(std::string_view line) {
  const std::string_view name = line.substr(0, line.find(':'));
  const auto is_of_name = [](unsigned char each) {
    return std::isalnum(each) != 0 || each == '_' || each == '.';
  };
  if (name.empty() || !std::ranges::all_of(name, is_of_name)) return false;
  return name.ends_with("Error") || name.ends_with("Exception") || name.ends_with("Interrupt");
}

std::string explaining_line(std::string_view text) {
  Explaining explaining;
  while (!text.empty()) explaining.take(cut_line(text));
  std::string line(explaining.found());
  if (line.size() > kLongestLine) line = line.substr(0, kLongestLine - 3) + "...";
  return line;
}

bool marks_a_victim(std::string_view line) {
  return std::ranges::any_of(kVictims, [&](auto each) { return has_part(line, each); });
}

std::string to_text(const EarlierFailure& failure) {
  return std::to_string(failure.attempt) + " " + std::to_string(failure.log_bytes) +
         (failure.place ? " " + to_line(*failure.place) : "") + "\n" + failure.text;
}

std::optional<EarlierFailure> parse_earlier_failure(std::string_view text) {
  std::string_view line = cut_line(text);
  const auto attempt = parse_number<int>(cut_word(line));
  const auto log_bytes = parse_number<std::uint64_t>(cut_word(line));
  const std::string_view cause = cut_line(text);
  if (!attempt || *attempt < 0 || !log_bytes || cause.empty()) return std::nullopt;
  return EarlierFailure{*attempt, *log_bytes, parse_cause_place(line), std::string(cause)};
}

std::string to_line(const CausePlace& place) {
  return std::to_string(place.machine) + (place.rank ? " " + std::to_string(*place.rank) : "");
}

std::optional<CausePlace> parse_cause_place(std::string_view line) {
  const auto machine = parse_number<int>(cut_word(line));
  if (!machine || *machine < 0) return std::nullopt;
  const auto rank = parse_number<int>(cut_word(line));
  return CausePlace{*machine, rank && *rank >= 0 ? rank : std::nullopt};
}

}  // namespace dtool::host
