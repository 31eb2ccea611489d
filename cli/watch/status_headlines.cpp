// SPDX-License-Identifier: MIT
#include "cli/watch/status_headlines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>

#include "cli/failures.h"
#include "cli/terminal_text.h"
#include "cli/watch/cause.h"
#include "cli/watch/run_status.h"

namespace dtool::cli {
namespace {

/// What supervises the run, which attempt this is, and what the supervision cannot see.
std::vector<std::string> supervision_notes(const killfiles::Killfile& killfile,
                                           const std::vector<MachineStatus>& machines) {
  std::vector<std::string> notes;
  const bool is_running = std::any_of(machines.begin(), machines.end(), [](const auto& each) {
    return each.state == MachineState::running;
  });
  const auto is_watched = [](const MachineStatus& each) {
    return each.supervision.empty() || each.supervision == "ok";
  };
  if (is_running && is_watched(machines.front()) && !killfile.coordinator.empty())
    notes.push_back(fmt::format("supervised by machine {} ({})", killfile.machines.front().id,
                                killfile.machines.front().host));
  const int attempt = attempt_of(machines) + 1;
  if (killfile.max_restarts > 0 && attempt <= killfile.max_restarts + 1) {
    notes.push_back(fmt::format("attempt {} of {}", attempt, killfile.max_restarts + 1));
  } else if (attempt > 1) {
    notes.push_back(fmt::format("attempt {}", attempt));  // a scheduler counts no restarts of ours
  }
  if (const auto failure = earlier_failure_of(machines); failure && failure->attempt + 1 < attempt)
    notes.push_back(fmt::format("attempt {} failed: {}", failure->attempt + 1, failure->text));
  std::map<std::string, std::vector<ssh::Host>> unwatched;
  for (const MachineStatus& each : machines) {
    if (each.state == MachineState::running && !is_watched(each))
      unwatched[each.supervision].push_back(each.host);
  }
  for (const auto& [why, hosts] : unwatched)
    notes.push_back(fmt::format("not supervised: {}: {}", fold_hosts(hosts), why));
  return notes;
}

/// `last output 9m ago; longer: rank 3 (12m)`, if no machine that runs has written for a minute.
std::string silence_of(const std::vector<MachineStatus>& machines) {
  constexpr std::int64_t kSilent = 60;
  constexpr std::int64_t kLonger = 10;
  constexpr std::size_t kMostRanks = 8;
  std::optional<std::int64_t> newest;
  std::vector<std::pair<int, std::int64_t>> ranks;
  for (const MachineStatus& each : machines) {
    if (each.output_s_ago)
      newest = std::min(newest.value_or(*each.output_s_ago), *each.output_s_ago);
    ranks.insert(ranks.end(), each.silent_s.begin(), each.silent_s.end());
  }
  if (!newest || *newest < kSilent) return "";
  std::vector<std::string> longer;
  std::ranges::sort(ranks, std::greater(), &std::pair<int, std::int64_t>::second);
  for (const auto& [rank, age] : ranks)
    if (age >= *newest + kLonger && longer.size() < kMostRanks)
      longer.push_back(fmt::format("rank {} ({})", rank, duration_text(age)));
  return fmt::format("last output {} ago{}{}", duration_text(*newest),
                     longer.empty() ? "" : "; longer: ", fmt::join(longer, ", "));
}

/// `epoch 7  step 735  loss 0.0135  samples/s 28639  (2s ago)`
std::string progress_line(const TrainingProgress& progress) {
  const bool has_steps = progress.step > 0 || progress.others.empty();
  std::string line = has_steps ? fmt::format("step {}", progress.step) : "metrics";
  if (progress.epoch > 0) line.insert(0, fmt::format("epoch {}  ", progress.epoch));
  if (progress.loss) line += fmt::format("  loss {:.4f}", *progress.loss);
  if (progress.samples_per_s) line += fmt::format("  samples/s {:.0f}", *progress.samples_per_s);
  if (progress.train_success)
    line += fmt::format("  train success {:.4f}", *progress.train_success);
  if (progress.validation_success)
    line += fmt::format("  validation success {:.4f}", *progress.validation_success);
  for (const auto& [name, value] : progress.others)
    line += fmt::format("  {} {:.4g}", without_controls(name), value);
  return line + fmt::format("  ({} ago)", duration_text(progress.age_s));
}

}  // namespace

std::string summary(const std::vector<MachineStatus>& machines) {
  struct Count {
    std::string text;
    int order;
    std::size_t machines;
  };
  std::vector<Count> counts;
  std::size_t running = 0;
  for (const MachineStatus& each : machines) {
    if (each.state == MachineState::running) {
      ++running;
      continue;
    }
    const std::string text = state_text(each);
    const auto found = std::ranges::find(counts, text, &Count::text);
    if (found == counts.end()) {
      const int order = each.is_well() ? 2 : each.state == MachineState::stopped ? 1 : 0;
      counts.push_back({text, order, 1});
    } else {
      ++found->machines;
    }
  }
  std::ranges::stable_sort(counts, {}, &Count::order);  // the machines that failed come first
  const std::string all = counted(machines.size(), "machine");
  if (counts.size() == 1 && running == 0) return fmt::format("{} on {}", counts.front().text, all);
  if (running > 0) {
    std::string text = fmt::format("running on {} of {}", running, all);
    for (const Count& each : counts) text += fmt::format(", {} {}", each.machines, each.text);
    return text;
  }
  std::string text;
  for (const Count& each : counts) {
    text += text.empty() ? fmt::format("{}: {} of {} {}", state_of_run(machines), each.machines,
                                       all, each.text)
                         : fmt::format(", {} {}", each.machines, each.text);
  }
  return text;
}

std::vector<std::string> headlines(const Console& console, const killfiles::Killfile& killfile,
                                   const std::vector<MachineStatus>& machines,
                                   std::size_t columns) {
  const auto fit = [columns](const std::string& text, std::size_t used) {
    return columns == 0 ? text : cut(text, columns - std::min(used, columns));
  };
  const std::string id = fit(killfile.run_id, 0);
  std::vector<std::string> lines = {
      console.styled(Style::bold, id) +
      fit(fmt::format(": {}, started {}", summary(machines), killfile.created), length(id))};
  if (!killfile.chain.empty())
    lines.push_back(fit(fmt::format("resumes {}", fmt::join(killfile.chain, " -> ")), 0));
  if (!killfile.rerun_of.empty()) lines.push_back(fit("repeats " + killfile.rerun_of, 0));
  if (const auto cause = cause_of(machines)) {
    lines.push_back(console.styled(Style::red, "cause:") + fit(" " + cause->text, 6));
    if (!cause->lines.empty()) lines.push_back(fit("the last lines of " + cause->where + ":", 0));
    for (const std::string& line : cause->lines) lines.push_back(fit("  | " + line, 0));
  }
  for (const std::string& note : supervision_notes(killfile, machines))
    lines.push_back(fit(note, 0));
  if (const std::string silence = silence_of(machines); !silence.empty())
    lines.push_back(fit(silence, 0));
  if (const auto progress = progress_of(machines)) {
    lines.push_back(fit(progress_line(*progress), 0));
  }
  return lines;
}

}  // namespace dtool::cli
