// SPDX-License-Identifier: MIT
// `dtool plot`: the curves of one or more runs, in the terminal or as a picture.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/host_options.h"
#include "cli/host_output.h"
#include "cli/options.h"
#include "cli/plot/panel.h"
#include "cli/plot/plot_sources.h"
#include "cli/record/recorded.h"
#include "killfiles/nearest.h"
#include "ssh/wire/words.h"

namespace dtool::cli {
namespace {

struct Size {
  std::size_t width = 0;
  std::size_t height = 0;
};

/// `1200x800`; nothing if it is none.
std::optional<Size> read_size(const std::string& text) {
  constexpr std::size_t kMost = 20000;
  const std::size_t at = std::min(text.find('x'), text.size());
  const auto width = host::parse_number<std::size_t>(std::string_view(text).substr(0, at));
  const auto height =
      host::parse_number<std::size_t>(std::string_view(text).substr(std::min(at + 1, text.size())));
  if (!width || !height || *width > kMost || *height > kMost) return std::nullopt;
  return Size{*width, *height};
}

std::string must_be_size(const std::string& text) {
  const auto size = read_size(text);
  if (size && size->width >= kLeastColumns && size->height >= kLeastRows) return "";
  return fmt::format("'{}' is no WIDTHxHEIGHT from {}x{}", text, kLeastColumns, kLeastRows);
}

/// By the name's end.
std::optional<Picture> picture_of(const std::string& file) {
  if (file.ends_with(".svg")) return Picture::svg;
  if (file.ends_with(".png")) return Picture::png;
  if (file.ends_with(".pdf")) return Picture::pdf;
  return std::nullopt;
}

std::string must_be_picture(const std::string& text) {
  if (picture_of(text)) return "";
  return fmt::format("'{}' ends in none of .svg, .png and .pdf", text);
}

/// Throws UsageError where bytes and steps would stand on one axis.
XAxis x_axis_of(const std::vector<PlotSource>& sources, const std::string& wanted) {
  const auto over_bytes = std::ranges::count_if(sources, &PlotSource::is_over_bytes);
  if (over_bytes == 0) return wanted == "seconds" ? XAxis::seconds : XAxis::steps;
  if (over_bytes == std::ssize(sources)) return XAxis::bytes;
  throw UsageError("messages of dtool-trainer comm and metrics of runs have no axis in common",
                   "draw them one after another");
}

/// Throws UsageError if a line of a source has no time.
void check_times(const std::vector<PlotSource>& sources) {
  for (const PlotSource& source : sources) {
    if (std::ranges::none_of(source.metrics.curves,
                             [](const Curve& curve) { return curve.seconds.empty(); }))
      continue;
    throw UsageError(fmt::format("--x_axis seconds: {} has lines without a time", source.name),
                     "a line needs one, in seconds since 1970: {\"event\": \"step\", \"time\": "
                     "1763800000.5, ...");
  }
}

nlohmann::json whole_numbers(const std::vector<double>& values) {
  nlohmann::json list = nlohmann::json::array();
  for (const double value : values) list.push_back(std::llround(value));
  return list;
}

/// A number that is not finite becomes null.
nlohmann::json curves_json(const std::vector<PlotSource>& sources,
                           const std::vector<Panel>& panels) {
  nlohmann::json curves = nlohmann::json::array();
  for (const PlotSource& source : sources) {
    for (const Curve& curve : source.metrics.curves) {
      const bool is_wanted = std::ranges::any_of(
          panels, [&curve](const Panel& panel) { return panel.title == curve.metric; });
      if (!is_wanted) continue;
      curves.push_back({{"name", source.name},
                        {"metric", curve.metric},
                        {"event", curve.event},
                        {source.is_over_bytes ? "bytes" : "steps", whole_numbers(curve.steps)},
                        {"seconds", curve.seconds},
                        {"values", curve.values}});
    }
  }
  return curves;
}

class PlotAction : public Action {
 public:
  void add_options(Options& command) override {
    command.add_option("RUN", runs_, "run ids or parts of them; last, last-1 (the newest run)");
    command.add_option("--file FILE", files_,
                       "a metrics.jsonl or comm.jsonl on this machine; repeatable");
    command
        .add_option("--metrics NAMES", metrics_,
                    "metrics, joined by commas (loss,learning_rate,samples_per_s,test_accuracy)")
        .delimiter(',');
    command
        .add_option("--output FILE", output_,
                    "draw a picture into this .svg, .png or .pdf file, with gnuplot")
        .check(must_be_picture);
    command
        .add_option("--size WIDTHxHEIGHT", size_,
                    "characters of the terminal's plot, pixels of a picture (1200x800)")
        .check(must_be_size);
    command.add_option("--x_axis WHAT", x_axis_, "steps, or seconds of running time (steps)")
        .one_of({"steps", "seconds"});
    command
        .add_option("--y_axis SCALE", y_axis_,
                    "auto, linear or log (auto: log if values span decades)")
        .one_of({"auto", "linear", "log"});
    add_connect_options(command, hosts_);
  }

  int run(Invocation& invocation) override {
    Console& console = invocation.console;
    bool interrupted = false;
    std::vector<PlotSource> sources = read_sources(invocation, interrupted);
    std::vector<ssh::HostResult> results;
    for (const PlotSource& source : sources) {
      if (source.result) results.push_back(*source.result);
    }
    std::size_t failed = report_failures(console, results, "reading metrics.jsonl");
    std::erase_if(sources, [](const auto& each) { return each.result && !each.result->ok(); });
    const std::vector<Panel> panels = make_panels(sources);
    for (const PlotSource& source : sources) {
      if (!source.metrics.curves.empty()) continue;
      console.fail(fmt::format("{}: no numbers yet", source.name));
      ++failed;
    }
    const int exit_code = interrupted ? kInterrupted : failed > 0 ? kSomeFailed : kAllWell;
    if (!panels.empty() && !output_.empty()) {
      draw_picture(sources, panels);
      console.note(fmt::format("wrote {}", output_));
    } else if (!panels.empty() && !console.json()) {
      show(console, sources, panels);
    }
    if (console.json()) {
      nlohmann::json failures = nlohmann::json::array();
      for (const ssh::HostResult& result : results) {
        if (!result.ok()) failures.push_back(to_json(result));
      }
      console.document({{"exit_code", exit_code},
                        {"curves", curves_json(sources, panels)},
                        {"failures", failures}});
    }
    return exit_code;
  }

 private:
  std::vector<killfiles::Killfile> choose_runs(Console& console) const {
    std::vector<killfiles::Killfile> runs;
    for (const std::string& id : runs_) {
      std::error_code unseen;
      if (id.ends_with(".jsonl") && std::filesystem::is_regular_file(id, unseen))
        throw UsageError(fmt::format("{} is a file, and no run", id),
                         fmt::format("a file goes after --file: dtool plot --file {}", id));
      runs.push_back(recorded_run(id));
      if (runs.back().machines.front().output_folder.empty())
        throw UsageError(fmt::format("{} has no outputs", runs.back().run_id),
                         "it is a set-up of dtool config; dtool list shows all");
    }
    if (runs_.empty() && files_.empty()) {
      runs.push_back(newest_run_with_outputs());
      console.note(fmt::format("the newest run is {}", runs.back().run_id));
    }
    return runs;
  }

  std::vector<PlotSource> read_sources(Invocation& invocation, bool& interrupted) const {
    const std::vector<killfiles::Killfile> runs = choose_runs(invocation.console);
    std::vector<PlotSource> sources;
    for (const std::string& file : files_) {
      for (PlotSource& each : read_file_sources(file)) sources.push_back(std::move(each));
    }
    for (const killfiles::Killfile& run : runs) {
      const Targets targets = recorded_targets(run, hosts_, invocation.settings.users());
      const auto remote = invocation.reach(targets.hosts, targets.connect);
      invocation.console.progress(fmt::format("reading the metrics of {}", run.run_id));
      sources.push_back(read_run_source(*remote, run));
      invocation.console.progress({});
      interrupted = remote->interrupted();
      if (interrupted) break;
    }
    for (const PlotSource& source : sources) {
      if (source.metrics.unread == 0) continue;
      invocation.console.note(fmt::format("{}: {} could not be read, the first is line {}",
                                          source.name, counted(source.metrics.unread, "line"),
                                          source.metrics.first_unread));
    }
    return sources;
  }

  std::vector<Panel> make_panels(const std::vector<PlotSource>& sources) const {
    std::vector<Metrics> metrics;
    for (const PlotSource& source : sources) metrics.push_back(source.metrics);
    std::optional<Scale> scale;
    if (y_axis_ != "auto") scale = y_axis_ == "log" ? Scale::log : Scale::linear;
    const XAxis x_axis = x_axis_of(sources, x_axis_);
    if (x_axis == XAxis::seconds) check_times(sources);
    std::vector<Panel> panels;
    for (const std::string& metric : wanted_metrics(sources)) {
      if (auto panel = make_panel(metric, metrics, scale, x_axis)) {
        panels.push_back(std::move(*panel));
      }
    }
    share_x(panels);
    return panels;
  }

  std::vector<std::string> wanted_metrics(const std::vector<PlotSource>& sources) const {
    const std::vector<std::string> known = known_metrics(sources);
    if (known.empty()) return {};
    std::vector<std::string> wanted = metrics_;
    if (wanted.empty()) wanted = usual_metrics(sources);
    for (const std::string& each : wanted) {
      if (std::ranges::find(known, each) != known.end()) continue;
      const auto meant = killfiles::nearest(each, known);
      throw UsageError(fmt::format("--metrics: there is no metric {}", each),
                       fmt::format("{}there are {}", meant ? "did you mean " + *meant + "? " : "",
                                   fmt::join(known, ", ")));
    }
    return wanted;
  }

  void show(Console& console, const std::vector<PlotSource>& sources,
            const std::vector<Panel>& panels) const {
    const TerminalSize terminal = terminal_size(STDOUT_FILENO);
    // The line of the next prompt is left out.
    const Size size = size_.empty() ? Size{terminal.columns, terminal.rows - 1} : *read_size(size_);
    show_charts(console, sources, panels, size.width, size.height);
  }

  void draw_picture(const std::vector<PlotSource>& sources,
                    const std::vector<Panel>& panels) const {
    PictureRequest request;
    request.kind = picture_of(output_).value();
    if (!size_.empty()) {
      request.width = read_size(size_)->width;
      request.height = read_size(size_)->height;
    }
    for (const PlotSource& source : sources) request.names.push_back(source.name);
    request.panels = panels;
    write_picture(request, output_);
  }

  HostOptions hosts_;
  std::vector<std::string> runs_;
  std::vector<std::string> files_;
  std::vector<std::string> metrics_;
  std::string output_;
  std::string size_;
  std::string x_axis_ = "steps";
  std::string y_axis_ = "auto";
};

}  // namespace

std::unique_ptr<Action> make_plot() {
  return std::make_unique<PlotAction>();
}

}  // namespace dtool::cli
