// SPDX-License-Identifier: MIT
#include "cli/copy/fetch_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "cli/action.h"
#include "cli/console.h"
#include "ssh/host/strangers.h"
#include "ssh/machine/files.h"
#include "sync/pull.h"

namespace dtool::cli {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::vector<tree_sync::Source> sources_of(const killfiles::Machine& machine,
                                          const std::vector<std::string>& only) {
  std::vector<tree_sync::Source> sources;
  if (!machine.output_folder.empty())
    sources.push_back({machine.output_folder, "", only, {}, tree_sync::kFetchedMark});
  const fs::path log = machine.log;
  const bool is_in_outputs = !sources.empty() && ssh::below(log, machine.output_folder);
  if (!log.empty() && !is_in_outputs) sources.push_back({log.parent_path(), log.filename(), {}});
  if (sources.empty()) {
    throw UsageError(fmt::format("the killfile names no output folder of machine {} on {}",
                                 machine.id, machine.host),
                     "scp or rsync can bring what it wrote");
  }
  return sources;
}

void require_apart(const tree_sync::Source& source, const fs::path& destination) {
  if (!source.file.empty()) return;
  const fs::path from = fs::weakly_canonical(ssh::from_home(source.folder));
  const fs::path to = fs::weakly_canonical(destination);
  if (!ssh::below(to, from) && !ssh::below(from, to)) return;
  throw UsageError(fmt::format("the files lie in {} already, and cannot be copied into {}",
                               from.string(), to.string()),
                   "name another folder");
}

std::optional<std::uint64_t> still_allowed(std::optional<double> max_gb, std::uint64_t brought) {
  if (!max_gb) return std::nullopt;
  const auto most = static_cast<std::uint64_t>(*max_gb * 1e9);
  return most - std::min(most, brought);
}

std::string grown_text(const std::vector<std::string>& names) {
  return fmt::format("still growing, so these came as far as they were: {}",
                     without_controls(fmt::format("{}", fmt::join(names, ", "))));
}

std::string skipped_text(const std::vector<std::string>& names) {
  constexpr std::size_t kNamed = 5;
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + std::min(names.size(), kNamed));
  return fmt::format(
      "left out, since only files, folders and links within the source come: {}{}",
      without_controls(fmt::format("{}", fmt::join(first, ", "))),
      names.size() > kNamed ? fmt::format(" and {} more", names.size() - kNamed) : "");
}

void require_no_strangers(const fs::path& folder) {
  if (const auto stranger = host::find_stranger(folder, host::Strangers::uninvited))
    throw UsageError(host::to_string(*stranger) + ", who could change or lead elsewhere what comes",
                     "name a folder of your own");
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::array kUnits = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double amount = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  for (; amount >= 999.95 && unit + 1 < kUnits.size(); ++unit) amount /= 1000;
  return fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

std::string bar(double fraction) {
  constexpr int kWidth = 20;
  const int filled = static_cast<int>(fraction * kWidth);
  return fmt::format("[{:#<{}}{:-<{}}] {:3.0f}%", "", filled, "", kWidth - filled, 100 * fraction);
}

}  // namespace dtool::cli
