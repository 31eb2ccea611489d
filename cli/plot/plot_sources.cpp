// SPDX-License-Identifier: MIT
#include "cli/plot/plot_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "cli/action.h"
#include "cli/plot/comm_rows.h"
#include "cli/record/recorded.h"
#include "killfiles/whole_file.h"
#include "ssh/quote.h"
#include "ssh/script.h"

namespace dtool::cli {
namespace {

constexpr std::string_view kMetricsFile = "metrics.jsonl";
/// Beside it, where another run follows this one and validates its checkpoints.
constexpr std::string_view kValidation = "validation.jsonl";

constexpr std::array kUsualMetrics = {"loss", "learning_rate", "samples_per_s", "test_accuracy"};
/// An agent's: its loss says little of how well it does.
constexpr std::array kAgentsMetrics = {"train_success", "validation_success", "validation_spl",
                                       "samples_per_s"};
/// Of messages between ranks.
constexpr std::array kCommMetrics = {"all_reduce_us", "all_reduce_gb_per_s", "send_recv_us",
                                     "send_recv_gb_per_s"};

ssh::Command read_command(const std::string& folder) {
  return ssh::bash(
      fmt::format("{0}folder={1}\n"
                  "[ -e \"$folder/{2}\" ] || {{ answer metrics missing; exit; }}\n"
                  "answer metrics here\n"
                  "[ ! -e \"$folder/{3}\" ] || cat -- \"$folder/{3}\"\n"
                  "exec cat -- \"$folder/{2}\"\n",
                  ssh::answer_function(), ssh::quote_path(folder), kMetricsFile, kValidation));
}

/// The host answered, and has no such file.
void tell_missing(ssh::HostResult& result, const std::string& folder) {
  result.failure = ssh::Failure::local_program;
  result.exit_code = -1;
  result.error = fmt::format("there is no {}/{}", folder, kMetricsFile);
  result.hint =
      "the bundled trainer writes it at its first log point; another program has to write one "
      "into $DTOOL_OUTPUT_DIR";
}

}  // namespace

std::vector<PlotSource> read_file_sources(const std::string& file) {
  PlotSource source{file, std::nullopt, {}};
  try {
    const std::filesystem::path path = file;
    const auto validation = path.parent_path() / kValidation;
    std::string text;
    if (path.filename() == kMetricsFile && std::filesystem::exists(validation))
      text = killfiles::read_whole(validation);
    text += killfiles::read_whole(file);
    std::vector<PlotSource> algorithms;
    for (auto& [name, metrics] : read_comm_rows(text))
      algorithms.push_back({name, std::nullopt, std::move(metrics), true});
    if (!algorithms.empty()) return algorithms;
    source.metrics = read_metrics(text);
  } catch (const std::system_error& error) {
    throw UsageError(fmt::format("--file: {}", error.what()));
  }
  const Metrics& metrics = source.metrics;
  if (metrics.curves.empty())
    throw UsageError(
        fmt::format("--file: there are no numbers in {}{}", file,
                    metrics.unread == 0 ? ""
                                        : fmt::format(", whose line {} is no object of metrics",
                                                      metrics.first_unread)),
        R"(a line is as {"step": 1, "loss": 0.5}; a run's file is )"
        "metrics.jsonl in its output folder");
  return {source};
}

PlotSource read_run_source(ssh::Remote& remote, const killfiles::Killfile& killfile) {
  const std::string& folder = killfile.machines.front().output_folder;
  ssh::Events nobody;
  ssh::RunOptions options;
  options.timeout = std::chrono::minutes(5);
  options.on_interrupt = ssh::OnInterrupt::leave;
  PlotSource source{
      killfile.run_id, remote.run({{0, read_command(folder)}}, nobody, options).front(), {}};
  ssh::HostResult& result = *source.result;
  if (!result.ok()) return source;
  const auto parts = ssh::parts_by_answer(result.out, "metrics");
  if (const auto lines = parts.find("here"); lines != parts.end()) {
    source.metrics = read_metrics(lines->second);
  } else {
    tell_missing(result, folder);
  }
  result.out.clear();
  return source;
}

std::vector<std::string> known_metrics(const std::vector<PlotSource>& sources) {
  std::vector<std::string> known;
  for (const PlotSource& source : sources) {
    for (const Curve& curve : source.metrics.curves) {
      if (std::ranges::find(known, curve.metric) == known.end()) known.push_back(curve.metric);
    }
  }
  return known;
}

std::vector<std::string> usual_metrics(const std::vector<PlotSource>& sources) {
  const std::vector<std::string> known = known_metrics(sources);
  if (known.empty()) return {};
  const auto is_known = [&known](const char* usual) {
    return std::ranges::find(known, usual) != known.end();
  };
  const bool is_agent = is_known("train_success") || is_known("validation_success");
  std::vector<std::string> usual;
  std::ranges::copy_if(sources.front().is_over_bytes ? kCommMetrics
                       : is_agent                    ? kAgentsMetrics
                                                     : kUsualMetrics,
                       std::back_inserter(usual), is_known);
  // What another program writes is worth seeing, whatever its name.
  constexpr std::size_t kMost = 4;
  const bool is_trainers = is_agent || std::ranges::all_of(sources, [](const PlotSource& each) {
                             return each.metrics.is_trainers || each.is_over_bytes;
                           });
  for (const std::string& each : known) {
    if (usual.size() >= kMost || (is_trainers && !usual.empty())) break;
    if (std::ranges::find(usual, each) == usual.end()) usual.push_back(each);
  }
  return usual;
}

killfiles::Killfile newest_run_with_outputs() {
  for (const killfiles::Listed& each : killfiles::list(killfile_folder())) {
    const bool has_outputs = each.killfile && each.killfile->kind == killfiles::Kind::run &&
                             !each.killfile->machines.empty() &&
                             !each.killfile->machines.front().output_folder.empty();
    if (has_outputs) return *each.killfile;
  }
  throw UsageError(fmt::format("no run with outputs is recorded in {}", killfile_folder().string()),
                   "dtool run starts one; --file takes a metrics.jsonl that is here");
}

}  // namespace dtool::cli
