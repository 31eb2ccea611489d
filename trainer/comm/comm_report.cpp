// Formats the rows as text.
#include "trainer/comm/comm_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace dtool::trainer {
namespace {

/// `all_reduce ring`, and for messages `send_recv links, 2 machines`.
std::string series_of(const CommRow& row) {
  auto name = fmt::format("{} {}", to_string(row.operation), to_string(row.way));
  if (row.ranks != "all") {
    name += fmt::format(", {} machine{}", row.machines, row.machines == 1 ? "" : "s");
  }
  return name;
}

enum class Axis { time, bandwidth };

/// One of the pictures in the picture.
struct Panel {
  const char* title;
  Axis axis;
  std::vector<Operation> operations;
};

const Panel kPanels[] = {
    {"all_reduce: time", Axis::time, {Operation::all_reduce}},
    {"all_reduce: bus bandwidth", Axis::bandwidth, {Operation::all_reduce}},
    {"reduce: time", Axis::time, {Operation::reduce}},
    {"a message: time", Axis::time, {Operation::send_recv, Operation::isend_irecv}},
    {"a message: bandwidth", Axis::bandwidth, {Operation::send_recv, Operation::isend_irecv}},
    {"other collectives: time",
     Axis::time,
     {Operation::broadcast, Operation::gather, Operation::all_gather, Operation::scatter}},
};

/// A block of data for each line of a panel: bytes, microseconds, GB/s.
struct Series {
  std::string name;
  Operation operation;
  std::vector<const CommRow*> rows;
};

std::vector<Series> series_of(const std::vector<CommRow>& rows) {
  std::vector<Series> all;
  for (const CommRow& row : rows) {
    if (row.bytes == 0) continue;  // a barrier
    const auto name = series_of(row);
    auto found =
        std::find_if(all.begin(), all.end(), [&](const Series& each) { return each.name == name; });
    if (found == all.end()) found = all.insert(all.end(), {name, row.operation, {}});
    found->rows.push_back(&row);
  }
  return all;
}

std::string panel_script(const Panel& panel, const std::vector<Series>& all) {
  std::string lines;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (std::find(panel.operations.begin(), panel.operations.end(), all[i].operation) ==
        panel.operations.end()) {
      continue;
    }
    // One operation's name is in the title already.
    const auto label = panel.operations.size() == 1
                           ? all[i].name.substr(to_string(all[i].operation).size() + 1)
                           : all[i].name;
    lines +=
        fmt::format("{} $series{} using 1:{} with linespoints title '{}'",
                    lines.empty() ? "plot" : ", \\\n ", i, panel.axis == Axis::time ? 2 : 3, label);
  }
  if (lines.empty()) return "";
  // Where the curves, which all rise, are not.
  return fmt::format("set title '{}'\nset ylabel '{}'\nset key {} noenhanced\n{}\n", panel.title,
                     panel.axis == Axis::time ? "microseconds" : "GB/s",
                     panel.axis == Axis::time ? "left top" : "right bottom", lines);
}

}  // namespace

double algorithm_bandwidth(const CommRow& row) {
  return row.median_seconds > 0 ? static_cast<double>(row.bytes) / row.median_seconds / 1e9 : 0;
}

double bus_bandwidth(const CommRow& row, int world_size) {
  const double others = static_cast<double>(world_size - 1) / world_size;
  switch (row.operation) {
    case Operation::all_reduce:
      return algorithm_bandwidth(row) * 2 * others;
    case Operation::gather:
    case Operation::all_gather:
    case Operation::scatter:
      return algorithm_bandwidth(row) * others;
    default:
      return algorithm_bandwidth(row);
  }
}

std::string table_header() {
  return fmt::format("{:<12} {:<17} {:>5} {:>8} {:>10} {:>10} {:>10} {:>8} {:>8} {:>6}\n",
                     "operation", "algorithm", "ranks", "machines", "bytes", "min us", "median us",
                     "alg GB/s", "bus GB/s", "#wrong");
}

std::string table_line(const CommRow& row, int world_size) {
  const auto bandwidth = [&](double value) {
    return row.bytes == 0 ? std::string("-") : fmt::format("{:.3f}", value);
  };
  return fmt::format("{:<12} {:<17} {:>5} {:>8} {:>10} {:>10.1f} {:>10.1f} {:>8} {:>8} {:>6}\n",
                     to_string(row.operation), to_string(row.way), row.ranks, row.machines,
                     row.bytes, row.least_seconds * 1e6, row.median_seconds * 1e6,
                     bandwidth(algorithm_bandwidth(row)), bandwidth(bus_bandwidth(row, world_size)),
                     row.wrong);
}

MetricsLine metrics_line(const CommRow& row, int world_size) {
  return {{"operation", std::string(to_string(row.operation))},
          {"algorithm", std::string(to_string(row.way))},
          {"ranks", row.ranks},
          {"machines", std::int64_t{row.machines}},
          {"bytes", row.bytes},
          {"min_seconds", row.least_seconds},
          {"median_seconds", row.median_seconds},
          {"iterations", row.iterations},
          {"algorithm_gb_per_s", algorithm_bandwidth(row)},
          {"bus_gb_per_s", bus_bandwidth(row, world_size)},
          {"wrong", row.wrong}};
}

std::string gnuplot_script(const std::vector<CommRow>& rows, int world_size,
                           const std::string& title) {
  const auto all = series_of(rows);
  std::string data;
  for (std::size_t i = 0; i < all.size(); ++i) {
    data += fmt::format("$series{} << END  # {}\n", i, all[i].name);
    for (const CommRow* row : all[i].rows) {
      data += fmt::format("{} {} {}\n", row->bytes, row->median_seconds * 1e6,
                          bus_bandwidth(*row, world_size));
    }
    data += "END\n";
  }
  std::string panels;
  int count = 0;
  for (const Panel& each : kPanels) {
    const auto script = panel_script(each, all);
    count += script.empty() ? 0 : 1;
    panels += script;
  }
  const int columns = count > 1 ? 2 : 1;
  const int lines = (count + columns - 1) / columns;
  const auto picture = [&](const char* terminal, const char* file) {
    return fmt::format(
        "set terminal {} size {},{} font 'Sans,10'\nset output '{}'\n"
        "set multiplot layout {},{} title \"{}\" noenhanced\n{}unset multiplot\n",
        terminal, 640 * columns, 420 * lines, file, lines, columns, title, panels);
  };
  return "# Drawn by `gnuplot comm.gnuplot`: comm.svg and comm.png.\n" + data +
         "set logscale x 2\nset logscale y\nset format x '%.0b%B'\nset xlabel 'bytes'\n"
         "set grid\nset title noenhanced\n" +
         picture("svg background '#ffffff'", "comm.svg") + picture("pngcairo", "comm.png") +
         "unset output\n";
}

}  // namespace dtool::trainer
