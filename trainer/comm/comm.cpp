// Prints the text before, between and after the rows; the rows come from comm_measure.cpp.
#include "trainer/comm/comm.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "trainer/comm/comm_measure.h"
#include "trainer/comm/comm_report.h"
#include "trainer/comm/library_transport.h"
#include "trainer/comm/links.h"
#include "trainer/settings/usage_error.h"
#include "trainer/training/checkpoint_folder.h"

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
  auto text =
      fmt::format("dtool-trainer {} (LibTorch {}) comm: {} ranks on {} machine{}\n", DTOOL_VERSION,
                  TORCH_VERSION, group.size, machines, machines == 1 ? "" : "s");
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

void draw(const std::filesystem::path& folder) {
  std::fflush(stdout);
  const auto script = (folder / "comm.gnuplot").string();
  const char* const arguments[] = {"gnuplot", "comm.gnuplot", nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", 1, 0);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = -1;
  const int error = posix_spawnp(&child, "gnuplot", &actions, nullptr,
                                 const_cast<char* const*>(arguments), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  const bool drawn = error == 0 && waitpid(child, &status, 0) == child && status == 0;
  if (drawn) {
    fmt::print(stderr, "drawn: {} and comm.png\n", (folder / "comm.svg").string());
  } else {
    fmt::print(stderr, "not drawn: `gnuplot {}` draws it (Debian: gnuplot-nox)\n", script);
  }
}

void write_files(const std::filesystem::path& folder, const std::vector<CommRow>& rows,
                 const std::string& title, int world_size) {
  std::filesystem::create_directories(folder);
  std::string lines;
  for (const CommRow& each : rows) lines += to_json(metrics_line(each, world_size)) + "\n";
  write_whole(folder / "comm.jsonl", lines);
  write_whole(folder / "comm.gnuplot", gnuplot_script(rows, world_size, title));
  draw(folder);
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
    const auto first_line_of_title = title.substr(0, title.find('\n'));
    if (options.output_dir) {
      write_files(*options.output_dir, rows, first_line_of_title, group.size);
    }
  }
  expect_right(rows);
}

}  // namespace dtool::trainer
