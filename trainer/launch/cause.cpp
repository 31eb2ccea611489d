// The wording of causes, and their form on the wire: `cause`, certainty, exit code, how the workers
// end, text and hint, with tabs between.
#include "trainer/launch/cause.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace dtool::trainer {
namespace {

constexpr std::size_t kLongestText = 2000;

/// One line of bounded length without control characters, whatever a worker said. (Those from 128
/// to 159 are two bytes in UTF-8, the first of them 0xc2.)
std::string on_one_line(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    if (byte == 0xc2 && next >= 0x80 && next <= 0x9f) text[i] = text[i + 1] = ' ';
    if (byte < ' ' || byte == 0x7f) text[i] = ' ';
  }
  if (text.size() > kLongestText) text = text.substr(0, kLongestText) + "...";
  return text;
}

std::string because(const std::string& reason) {
  return reason.empty() ? "" : ": " + reason;
}

/// Before std::terminate aborts, it says on standard error what nobody caught; other signals come
/// from outside, and what the process had said before has nothing to do with them.
std::string reason_of_signal(const WorkerEnd& end) {
  if (WTERMSIG(end.status) == SIGKILL && end.out_of_memory) {
    return "the kernel was out of memory";
  }
  if (!end.words.empty()) return end.words;
  return WTERMSIG(end.status) == SIGABRT ? end.last_error : "";
}

std::string describe(const WorkerEnd& end, const std::string& who) {
  if (WIFSIGNALED(end.status)) {
    const int signal = WTERMSIG(end.status);
    return fmt::format("{} was killed by signal {} ({}){}", who, signal, strsignal(signal),
                       because(reason_of_signal(end)));
  }
  return fmt::format("{} failed with exit code {}{}", who, WEXITSTATUS(end.status),
                     because(end.words.empty() ? end.last_error : end.words));
}

}  // namespace

std::string machine_name(int machine, const std::string& host) {
  return host.empty() ? fmt::format("machine {}", machine)
                      : fmt::format("machine {} ({})", machine, host);
}

Cause cause_of(const WorkerEnd& end, int machine, const std::string& host) {
  Cause cause;
  cause.hint = on_one_line(end.hint);
  const int code = WIFEXITED(end.status) ? WEXITSTATUS(end.status) : -1;
  // Without words it is no code of ours: whatever the worker ran chose the same number.
  const bool is_ours = !end.words.empty();
  if (code == kOthersFailed && is_ours) cause.certainty = Cause::Certainty::suspected;
  if (code == kMistake && is_ours) cause.exit_code = kMistake;
  const bool says_it_all = is_ours && (code == kOthersFailed || code == kRunFailed);
  const auto who = fmt::format("rank {} on {}", end.rank, machine_name(machine, host));
  cause.text = on_one_line(says_it_all ? end.words : describe(end, who));
  return cause;
}

std::string name_missing_ranks(const std::vector<int>& ranks, int local_world_size) {
  constexpr std::size_t kNamed = 8;
  std::map<int, std::vector<int>> machines;
  for (const int rank : ranks) machines[rank / local_world_size].push_back(rank);
  std::vector<std::string> parts;
  for (const auto& [machine, its_ranks] : machines) {
    if (parts.size() == kNamed) {
      parts.push_back(fmt::format("and {} machines more", machines.size() - kNamed));
      break;
    }
    parts.push_back(fmt::format("machine {} (rank {})", machine, fmt::join(its_ranks, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string write_cause(const Cause& cause) {
  return fmt::format("cause\t{}\t{}\t{}\t{}\t{}",
                     cause.certainty == Cause::Certainty::certain ? "certain" : "suspected",
                     cause.exit_code,
                     cause.workers_end == Cause::WorkersEnd::at_once ? "kill" : "terminate",
                     on_one_line(cause.text), on_one_line(cause.hint));
}

std::optional<Cause> read_cause(std::string_view line) {
  std::vector<std::string> parts;
  while (parts.size() < 5) {
    const auto tab = line.find('\t');
    if (tab == line.npos) return std::nullopt;
    parts.emplace_back(line.substr(0, tab));
    line.remove_prefix(tab + 1);
  }
  const bool is_certain = parts[1] == "certain";
  const bool is_mistake = parts[2] == std::to_string(kMistake);
  const bool may_write = parts[3] == "terminate";
  if (parts[0] != "cause" || (!is_certain && parts[1] != "suspected") ||
      (!is_mistake && parts[2] != std::to_string(kFailed)) || (!may_write && parts[3] != "kill")) {
    return std::nullopt;
  }
  Cause cause;
  cause.certainty = is_certain ? Cause::Certainty::certain : Cause::Certainty::suspected;
  cause.exit_code = is_mistake ? kMistake : kFailed;
  if (may_write) cause.workers_end = Cause::WorkersEnd::with_a_checkpoint;
  cause.text = on_one_line(parts[4]);
  cause.hint = on_one_line(std::string(line));
  return cause;
}

std::string last_line(const Cause& cause, int machines) {
  if (cause.hint.empty()) return fmt::format("dtool-trainer: {}\n", cause.text);
  return machines == 1 ? fmt::format("dtool-trainer: {}\nhint: {}\n", cause.text, cause.hint)
                       : fmt::format("dtool-trainer: {} (hint: {})\n", cause.text, cause.hint);
}

}  // namespace dtool::trainer
