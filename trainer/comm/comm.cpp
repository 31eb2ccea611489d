// SPDX-License-Identifier: MIT
// Prints the text before, between and after the rows; the rows come from comm_measure.cpp.
#include "trainer/comm/comm.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdio>

#include "killfiles/version.h"
#include "trainer/comm/comm_measure.h"
#include "trainer/comm/comm_report.h"
#include "trainer/comm/library_transport.h"
#include "trainer/comm/links.h"
#include "trainer/report/written_file.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

std::string describe_carrier(const Links& links, const Meeting& meeting) {
  int shared = 0;
  for (int rank = 1; rank < meeting.place.world_size; ++rank) {
    shared += links.shares_memory_with(rank) ? 1 : 0;
  }
  if (shared == meeting.place.world_size - 1) return "shared memory";
  return shared == 0 ? "TCP" : "shared memory within a machine, TCP between";
}

/// The lines above the table, from rank 0's point of view.
std::string describe_run(const CommOptions& options, const Meeting& meeting, const Group& group,
                         const Links* links) {
  const int machines = count_machines(meeting.members);
  auto text = fmt::format("dtool-trainer {} (LibTorch {}) comm: {} ranks on {} machine{}\n",
                          killfiles::dtool_version(), TORCH_VERSION, group.size, machines,
                          machines == 1 ? "" : "s");
  text += fmt::format("library: {}\n", group.device.is_cuda() ? "NCCL on GPUs" : "gloo on CPUs");
  if (group.device.is_cuda()) {
    text += "links and algorithms of our own are for CPUs: left out\n";
  } else if (links != nullptr) {
    text += fmt::format("links: {}\n", describe_carrier(*links, meeting));
    text += fmt::format("messages of ring, pairwise, halving_doubling, doubling and tree: by {}\n",
                        options.carrier == Carrier::links ? "links" : "the library");
  }
  return text;
}

void write_rows(const std::filesystem::path& folder, const std::vector<CommRow>& rows,
                int world_size) {
  std::filesystem::create_directories(folder);
  std::string lines;
  for (const CommRow& each : rows) lines += to_json(metrics_line(each, world_size)) + "\n";
  const auto file = folder / "comm.jsonl";
  write_whole(file, lines);
  fmt::print(stderr, "wrote {0}: `dtool plot --file {0}` draws it\n", file.string());
}

std::string json_document(const std::vector<CommRow>& rows, const Meeting& meeting) {
  std::string text = fmt::format("{{\"world_size\": {}, \"machines\": {}, \"rows\": [",
                                 meeting.place.world_size, count_machines(meeting.members));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += (i == 0 ? "\n" : ",\n") + to_json(metrics_line(rows[i], meeting.place.world_size));
  }
  return text + "\n]}\n";
}

/// The first wrong row, and how many there are.
void expect_right(const std::vector<CommRow>& rows) {
  const auto is_wrong = [](const CommRow& row) { return row.wrong > 0; };
  const auto first = std::find_if(rows.begin(), rows.end(), is_wrong);
  if (first == rows.end()) return;
  throw std::runtime_error(
      fmt::format("{} of {} rows have wrong numbers, the first: {} by {}, {} bytes, {} wrong",
                  std::count_if(rows.begin(), rows.end(), is_wrong), rows.size(),
                  to_string(first->operation), to_string(first->way), first->bytes, first->wrong));
}

}  // namespace

void run_comm(const CommOptions& options, const Meeting& meeting, const Group& group) {
  if (group.size < 2) {
    throw UsageError("comm needs at least 2 ranks", "give --nproc_per_node 2, or more machines");
  }
  CommOptions possible = options;
  std::optional<Links> links;
  if (group.device.is_cuda()) {
    possible.ways = {Way{}};
  } else {
    collectively([&] { links.emplace(meeting, kCommTimeout); });
  }
  LibraryTransport library(group);
  Transport* const own = links ? &*links : nullptr;
  const Transports transports{own, options.carrier == Carrier::links ? own : &library};
  const bool prints_table = group.rank == 0 && options.output == CommOptions::Output::table;
  std::string title;
  if (group.rank == 0) title = describe_run(options, meeting, group, links ? &*links : nullptr);
  if (prints_table) fmt::print("{}\n{}", title, table_header());
  std::fflush(stdout);
  const auto rows = measure(possible, meeting, group, transports, [&](const CommRow& row) {
    if (!prints_table) return;
    fmt::print("{}", table_line(row, group.size));
    std::fflush(stdout);
  });
  if (group.rank == 0) {
    if (!prints_table) fmt::print("{}", json_document(rows, meeting));
    if (options.output_dir) write_rows(*options.output_dir, rows, group.size);
  }
  expect_right(rows);
}

}  // namespace dtool::trainer
