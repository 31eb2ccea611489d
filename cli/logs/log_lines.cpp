// SPDX-License-Identifier: MIT
#include "cli/logs/log_lines.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace dtool::cli {
namespace {

/// As in host_output.cpp: a host cannot fill the memory with one line.
constexpr std::size_t kLongestLine = 1 << 20;
/// The approximate cost of a waiting line besides its bytes.
constexpr std::size_t kCostOfWaiting = 256;

}  // namespace

void LogLines::add(std::size_t machine, std::string_view bytes) {
  std::string& unfinished = machines_[machine].unfinished;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end == bytes.npos ? end : end + 1);
    bytes.remove_prefix(part.size());
    if (end == bytes.npos || !unfinished.empty()) {
      unfinished += part;
      if (end == bytes.npos && unfinished.size() >= kLongestLine) unfinished += '\n';
      if (!unfinished.ends_with('\n')) return settle();
      take(machine, std::exchange(unfinished, {}));
    } else {
      take(machine, part);
    }
  }
  settle();
}

void LogLines::break_line(std::size_t machine) {
  std::string& unfinished = machines_[machine].unfinished;
  if (!unfinished.empty()) take(machine, std::exchange(unfinished, {}) + "\n");
}

void LogLines::show_redrawn(std::size_t machine) {
  constexpr int kEvery = 5;
  Machine& of = machines_[machine];
  if (fold_ == Fold::yes || of.unfinished.find('\r') == std::string::npos) return;
  if (++of.calls < kEvery) return;
  of.calls = 0;
  std::string_view last = of.unfinished;
  while (last.ends_with('\r')) last.remove_suffix(1);
  last = last.substr(last.rfind('\r') + 1);
  if (!last.empty()) take(machine, std::string(last) + "\n");
  of.unfinished.clear();
}

void LogLines::end(std::size_t machine) {
  if (machines_[machine].has_ended || machines_[machine].is_left_out) return;
  break_line(machine);
  machines_[machine].has_ended = true;
  --going_on_;
  settle();
}

void LogLines::leave_out(std::size_t machine) {
  if (machines_[machine].is_left_out) return;
  break_line(machine);
  while (!machines_[machine].queue.empty()) show_front(machine);
  machines_[machine].is_left_out = true;
  if (!machines_[machine].has_ended) --going_on_;
  --taking_part_;
  const auto taking_part = [](const Machine& each) { return !each.is_left_out; };
  const auto first = std::find_if(machines_.begin(), machines_.end(), taking_part);
  if (first == machines_.end()) return;
  const auto all_say = [this](const auto* line) { return line->second.size() == taking_part_; };
  for (;;) {
    const auto next = std::find_if(first->queue.begin(), first->queue.end(), all_say);
    if (next == first->queue.end()) break;
    show_alike(**next);
  }
  settle();
}

void LogLines::show_due(std::size_t machine) {
  advance(machine);
  if (++pauses_ < going_on_) return;
  pauses_ = 0;
  for (std::size_t ended = 0; ended < machines_.size(); ++ended) {
    if (machines_[ended].has_ended) advance(ended);
  }
}

/// Shows the lines that have waited since the previous call.
void LogLines::advance(std::size_t machine) {
  Machine& of = machines_[machine];
  while (of.due > 0) show_front(machine);
  of.due = of.queue.size();
}

void LogLines::flush() {
  for (std::size_t machine = 0; machine < machines_.size(); ++machine) {
    while (!machines_[machine].queue.empty()) show_front(machine);
  }
}

void LogLines::take(std::size_t machine, std::string_view line) {
  if (fold_ == Fold::no) return show({machine}, line);
  line = shared_part(machine, line);
  Machine& of = machines_[machine];
  const auto at = waiting_.try_emplace(std::string(line)).first;
  ++at->second[machine];
  of.queue.push_back(&*at);
  waiting_bytes_ += line.size() + kCostOfWaiting;
  if (at->second.size() == taking_part_) show_alike(*at);
}

void LogLines::drop_front(std::size_t machine) {
  Machine& of = machines_[machine];
  assert(!of.queue.empty());
  Waiting::value_type* line = of.queue.front();
  assert(waiting_bytes_ >= line->first.size() + kCostOfWaiting && line->second.contains(machine));
  of.queue.pop_front();
  if (of.due > 0) --of.due;
  waiting_bytes_ -= line->first.size() + kCostOfWaiting;
  const auto count = line->second.find(machine);
  if (--count->second == 0) line->second.erase(count);
  if (line->second.empty()) waiting_.erase(waiting_.find(line->first));
}

/// Shows the machine's next line, together with the machines whose next line it is, too.
void LogLines::show_front(std::size_t machine) {
  const Waiting::value_type* line = machines_[machine].queue.front();
  const std::string text = line->first;  // its node goes with the last machine that has it
  std::vector<std::size_t> alike;
  for (const auto& [each, count] : line->second) {
    if (machines_[each].queue.front() == line) alike.push_back(each);
  }
  for (const std::size_t each : alike) drop_front(each);
  show(alike, text);
}

/// Shows a line for all machines that say it, behind what each says before it.
void LogLines::show_alike(const Waiting::value_type& line) {
  const std::string text = line.first;  // its node goes with the last machine that has it
  std::vector<std::size_t> alike;
  for (const auto& [machine, count] : line.second) alike.push_back(machine);
  for (const std::size_t machine : alike) {
    while (machines_[machine].queue.front()->first != text) show_front(machine);
  }
  for (const std::size_t machine : alike) drop_front(machine);
  show(alike, text);
}

/// Whether no further machine can say it: each has, or its log has ended.
bool LogLines::is_settled(const Waiting::value_type& line) const {
  if (line.second.size() < going_on_) return false;
  for (std::size_t machine = 0; machine < machines_.size(); ++machine) {
    const bool is_over = machines_[machine].has_ended || machines_[machine].is_left_out;
    if (!is_over && !line.second.contains(machine)) return false;
  }
  return true;
}

void LogLines::show_settled() {
  for (std::size_t machine = 0; machine < machines_.size(); ++machine) {
    const auto& queue = machines_[machine].queue;
    while (!queue.empty() && is_settled(*queue.front())) show_alike(*queue.front());
  }
}

void LogLines::settle() {
  if (fold_ == Fold::no) return;
  show_settled();
  while (waiting_bytes_ > most_waiting_) {
    const auto fullest = std::max_element(
        machines_.begin(), machines_.end(),
        [](const Machine& a, const Machine& b) { return a.queue.size() < b.queue.size(); });
    show_front(static_cast<std::size_t>(fullest - machines_.begin()));
  }
}

}  // namespace dtool::cli
