// SPDX-License-Identifier: MIT
#include "killfiles/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <type_traits>

namespace dtool::killfiles {
namespace {

std::string as_text(const std::string& value) {
  return value;
}

std::string as_text(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::string as_text(int value) {
  return std::to_string(value);
}

template <typename Number>
std::string as_text(const std::optional<Number>& value) {
  return value ? std::to_string(*value) : "";
}

Run usual_run() {
  Run run;
  run.lost_after = kUsualLostAfter;
  run.output_dir = kUsualOutputDir;
  return run;
}

}  // namespace

Row row_of(std::string_view name) {
  Row found{};
  visit_rows(Run(), [&](const Row& row, const auto&) {
    if (row.name == name) found = row;
  });
  return found;
}

std::vector<Told> tell(const Run& run) {
  std::vector<Told> told;
  visit_rows(usual_run(), [&told](const Row& row, const auto& value) {
    told.push_back({row, "", as_text(value)});
  });
  std::size_t place = 0;
  visit_rows(run, [&](const Row&, const auto& value) { told[place++].text = as_text(value); });
  return told;
}

std::vector<Told> tell_unusual(const Run& run) {
  std::vector<Told> told = tell(run);
  std::erase_if(told, [](const Told& each) {
    return *each.row.shown == '\0' || each.text.empty() || each.text == each.usual;
  });
  return told;
}

bool is_run_id(std::string_view id) {
  return !id.empty() && id.size() <= 200 && is_alphanumeric(id.front()) &&
         std::ranges::all_of(
             id, [](char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
}

bool is_time(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
  return text.empty() || std::ranges::equal(text, kForm, [](char c, char form) {
           return form == '0' ? is_digit(c) : c == form;
         });
}

void assume_older(Run& run) {
  run.engine = "ssh";
  run.on_failure = Run::kLeave;
}

void refuse_faults(const Run& run,
                   const std::function<void(const char* name, const std::string& fault)>& refuse) {
  const auto require_id = [&refuse](const char* name, const std::string& id) {
    if (!is_run_id(id)) refuse(name, fmt::format("'{}' is no run id", id));
  };
  const auto require_within = [&refuse](const Row& row, std::optional<int> number) {
    if (number && (*number < row.least || *number > row.most))
      refuse(row.name, fmt::format("{} is not from {} to {}", *number, row.least, row.most));
  };
  require_id("run_id", run.run_id);
  for (const std::string& each : run.chain) require_id("chain", each);
  if (!run.rerun_of.empty()) require_id("rerun_of", run.rerun_of);
  if (!is_time(run.created))
    refuse("created", fmt::format("'{}' is no time such as 2026-11-21T03:45:12Z", run.created));
  if (run.on_failure != Run::kStop && run.on_failure != Run::kLeave)
    refuse("on_failure", fmt::format("'{}' is neither 'stop' nor 'leave'", run.on_failure));
  visit_rows(run, [&require_within](const Row& row, const auto& value) {
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, int> || std::is_same_v<Value, std::optional<int>>)
      require_within(row, value);
  });
}

}  // namespace dtool::killfiles
