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
#include "trainer/comm/comm_report.h"
#include "trainer/comm/comm_trial.h"
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
  if (std::ranges::find(wanted, Way{}) != wanted.end()) return {Way{}};
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

bool is_between_two(Operation operation) {
  return operation == Operation::send_recv || operation == Operation::isend_irecv;
}

class Measurement {
 public:
  Measurement(const CommOptions& options, const Meeting& meeting, const Group& group,
              const Transports& transports, const std::function<void(const CommRow&)>& tell)
      : options_(options), meeting_(meeting), group_(group), transports_(transports), tell_(tell) {}

  std::vector<CommRow> rows;

  void measure_all() {
    for (const Operation operation : options_.operations) {
      for (const Way& way : options_.ways) {
        if (!can_do(operation, way)) continue;
        if (is_between_two(operation)) {
          measure_pairs(operation, way);
        } else {
          measure_sizes(operation, way, {});
        }
      }
    }
  }

 private:
  void measure_pairs(Operation operation, const Way& way) {
    for (const Pair& pair : pairs_of(meeting_)) measure_sizes(operation, way, pair);
  }

  void measure_sizes(Operation operation, const Way& way, const Pair& pair) {
    CommRow row{operation, way, "all", count_machines(meeting_.members)};
    if (is_between_two(operation)) {
      row.ranks = fmt::format("{}-{}", pair.first, pair.second);
      const auto& members = meeting_.members;
      row.machines = count_machines({members[0], members[static_cast<std::size_t>(pair.second)]});
    }
    if (operation == Operation::barrier) {
      if (way.kind == Way::Kind::library) {
        measure_one(make_barrier_trial(group_, *meeting_.store), row);
      }
      return;
    }
    Transport* const transport =
        way.kind == Way::Kind::links ? transports_.links : transports_.carrier;
    for (const std::int64_t size : options_.sizes) {
      measure_one(make_trial(operation, way, size, group_, transport, pair), row);
    }
  }

  void measure_one(const Trial& trial, CommRow row) {
    collectively([&] { measure_row(options_, trial, group_, row); });
    rows.push_back(row);
    if (group_.rank == 0) tell_(row);
  }

  const CommOptions& options_;
  const Meeting& meeting_;
  const Group& group_;
  Transports transports_;
  const std::function<void(const CommRow&)>& tell_;
};

}  // namespace

std::vector<CommRow> measure(const CommOptions& options, const Meeting& meeting, const Group& group,
                             const Transports& transports,
                             const std::function<void(const CommRow&)>& tell) {
  Measurement measurement(options, meeting, group, transports, tell);
  measurement.measure_all();
  return measurement.rows;
}

}  // namespace dtool::trainer
