// SPDX-License-Identifier: MIT
// Prints the text before, between and after the rows; the rows are measured below.
#include "trainer/comm/comm.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "killfiles/version.h"
#include "trainer/comm/comm_trial.h"
#include "trainer/comm/links.h"
#include "trainer/report/written_file.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

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
    text += fmt::format("messages of ring, pairwise, halving_doubling and doubling: by {}\n",
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

std::vector<Way> possible_ways(const std::vector<Way>& wanted, at::Device device) {
  if (!device.is_cuda()) return wanted;
  if (std::ranges::find(wanted, Way::library) != wanted.end()) return {Way::library};
  throw UsageError(
      "--algorithms has only those of our own, which are for CPUs, and this is on GPUs",
      "add library to them, or give --backend gloo");
}

void run_comm(const CommOptions& options, const Meeting& meeting, const Group& group) {
  if (group.size < 2) {
    throw UsageError("comm needs at least 2 ranks", "give --nproc_per_node 2, or more machines");
  }
  CommOptions possible = options;
  std::optional<Links> links;
  if (group.device.is_cuda()) {
    possible.ways = possible_ways(options.ways, group.device);
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

// Read it from the bottom: all rows, one row, one batch.

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarmUps = 5;
constexpr double kBatchSeconds = 0.01;
constexpr std::int64_t kMostIterations = 10000;

std::vector<double> max_over_ranks(const Group& group, const std::vector<double>& values) {
  at::Tensor tensor = at::tensor(values, at::kDouble).to(group.device);
  std::vector<at::Tensor> tensors = {tensor};
  c10d::AllreduceOptions options;
  options.reduceOp = c10d::ReduceOp::MAX;
  group.process_group->allreduce(tensors, options)->wait();
  tensor = tensor.cpu();
  return {tensor.data_ptr<double>(), tensor.data_ptr<double>() + tensor.numel()};
}

/// On a GPU an operation that has been waited for may still be running.
void finish_on_device(const Group& group) {
  if (group.device.is_cuda()) torch::cuda::synchronize();
}

/// Mean seconds of one operation over `iterations` that follow each other, on this rank.
double time_batch(const Trial& trial, const Group& group, std::int64_t iterations) {
  wait_for_all_ranks(group);
  finish_on_device(group);
  const auto begin = Clock::now();
  for (std::int64_t i = 0; i < iterations; ++i) trial.run();
  finish_on_device(group);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return seconds / static_cast<double>(iterations * trial.messages);
}

/// Does it once on known numbers; returns how many are wrong on this rank.
std::int64_t check(const Trial& trial) {
  if (trial.run_checked) return trial.run_checked();
  fill(trial.slots);
  trial.run();
  std::int64_t wrong = 0;
  for (const Slot& each : trial.slots) wrong += count_wrong(each);
  return wrong;
}

/// As many as fill a batch; the same on every rank.
std::int64_t choose_iterations(const CommOptions& options, const Trial& trial, const Group& group) {
  if (options.iterations) return *options.iterations;
  const double seconds = max_over_ranks(group, {time_batch(trial, group, 2)})[0] * trial.messages;
  return std::clamp(static_cast<std::int64_t>(kBatchSeconds / std::max(seconds, 1e-9)),
                    std::int64_t{1}, kMostIterations);
}

/// Fills in times and wrong numbers.
void measure_row(const CommOptions& options, const Trial& trial, const Group& group, CommRow& row) {
  auto wrong = static_cast<double>(check(trial));
  // Sums of zeros stay zeros, however often they are added up.
  for (const Slot& each : trial.slots) each.tensor.zero_();
  for (int i = 0; i < kWarmUps; ++i) trial.run();
  const std::int64_t iterations = choose_iterations(options, trial, group);
  std::vector<double> batches;
  for (int i = 0; i < options.repeats; ++i) {
    batches.push_back(time_batch(trial, group, iterations));
  }
  wrong += static_cast<double>(check(trial));
  // An operation is over when its last rank is done.
  batches = max_over_ranks(group, batches);
  std::sort(batches.begin(), batches.end());
  row.bytes = trial.bytes;
  row.least_seconds = batches.front();
  row.median_seconds = batches[batches.size() / 2];
  row.iterations = iterations * options.repeats;
  row.wrong = static_cast<std::int64_t>(sum_over_ranks(group, {wrong})[0]);
}

/// Rank 0 with the next rank of its machine, and with the first of another one.
std::vector<Pair> pairs_of(const Meeting& meeting) {
  std::vector<Pair> pairs;
  for (const bool wanted : {true, false}) {
    for (int rank = 1; rank < meeting.place.world_size; ++rank) {
      const auto& member = meeting.members[static_cast<std::size_t>(rank)];
      if (on_one_machine(meeting.members[0], member) != wanted) continue;
      pairs.push_back({0, rank});
      break;
    }
  }
  return pairs;
}

/// The operations and ways that go together, in the order of the rows.
std::vector<std::pair<Operation, Way>> kinds_of(const CommOptions& options) {
  std::vector<std::pair<Operation, Way>> kinds;
  for (const Operation operation : options.operations) {
    for (const Way way : options.ways) {
      if (can_do(operation, way)) kinds.emplace_back(operation, way);
    }
  }
  return kinds;
}

/// The rows of one size, without results; a message has one for each of its pairs.
std::vector<std::pair<Pair, CommRow>> rows_of(Operation operation, Way way,
                                              const Meeting& meeting) {
  const auto& members = meeting.members;
  if (operation != Operation::send_recv && operation != Operation::isend_irecv) {
    return {{{}, {operation, way, "all", count_machines(members)}}};
  }
  std::vector<std::pair<Pair, CommRow>> rows;
  for (const Pair& pair : pairs_of(meeting)) {
    const Member& second = members[static_cast<std::size_t>(pair.second)];
    rows.push_back({pair,
                    {operation, way, fmt::format("{}-{}", pair.first, pair.second),
                     count_machines({members[0], second})}});
  }
  return rows;
}

}  // namespace

std::vector<CommRow> measure(const CommOptions& options, const Meeting& meeting, const Group& group,
                             const Transports& transports,
                             const std::function<void(const CommRow&)>& tell) {
  std::vector<CommRow> rows;
  const auto measure_one = [&](const Trial& trial, CommRow row) {
    collectively([&] { measure_row(options, trial, group, row); });
    rows.push_back(row);
    if (group.rank == 0) tell(row);
  };
  const int machines = count_machines(meeting.members);
  for (const auto& [operation, way] : kinds_of(options)) {
    if (operation == Operation::barrier) {
      measure_one(make_barrier_trial(group, *meeting.store), {operation, way, "all", machines});
      continue;
    }
    Transport* const transport = way == Way::links ? transports.links : transports.carrier;
    for (const auto& [pair, row] : rows_of(operation, way, meeting)) {
      for (const std::int64_t size : options.sizes) {
        measure_one(make_trial(operation, way, size, group, transport, pair), row);
      }
    }
  }
  return rows;
}

}  // namespace dtool::trainer
