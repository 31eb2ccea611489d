// SPDX-License-Identifier: MIT
// The options of `dtool-trainer comm`.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/settings/experiment.h"

namespace dtool::trainer {

/// The algorithms of all-reduce that are made of messages.
inline constexpr Way kAlgorithms[] = {Way::ring, Way::pairwise, Way::halving_doubling,
                                      Way::doubling};

enum class Operation {
  send_recv,    ///< a message there and one back, one side after the other
  isend_irecv,  ///< a message each way at once; both are sent before either rank waits
  broadcast,
  reduce,
  all_reduce,
  gather,
  all_gather,
  scatter,
  barrier,
};

inline constexpr Operation kOperations[] = {
    Operation::send_recv,  Operation::isend_irecv, Operation::broadcast,
    Operation::reduce,     Operation::all_reduce,  Operation::gather,
    Operation::all_gather, Operation::scatter,     Operation::barrier};

std::string_view to_string(Operation operation);

/// `library`, `links`, or the algorithm's name.
std::string_view to_string(Way way);

/// Whether there is such a row: our algorithms exist for all_reduce, links for messages.
bool can_do(Operation operation, Way way);

/// What carries the messages of our algorithms.
enum class Carrier { links, library };

/// How long an operation may take, and how long a rank may be silent.
inline constexpr std::chrono::seconds kCommTimeout{60};

struct CommOptions {
  std::vector<std::int64_t> sizes;    ///< bytes, ascending
  std::vector<Operation> operations;  ///< the operations in the order of kOperations
  std::vector<Way> ways;
  Carrier carrier = Carrier::links;
  Backend backend = Backend::automatic;
  int repeats = 11;  ///< timed batches per row; the table shows their minimum and median
  std::optional<int> iterations;  ///< operations per batch; absent: as many as take 10 ms
  enum class Output { table, json } output = Output::table;
  std::optional<std::filesystem::path> output_dir;  ///< absent: no files

  CommOptions();  ///< the defaults: 1 KiB to 16 MiB, everything
};

/// `4k`, `1M` (powers of 1024), comma-separated lists of them, and ranges such as `1k-16M`, which
/// grow by factors of four. Throws UsageError.
std::vector<std::int64_t> parse_sizes(std::string_view text);

/// Comma-separated names. `send`, `recv`, `isend` and `irecv` mean the pair. Throws UsageError.
std::vector<Operation> parse_operations(std::string_view text);
std::vector<Way> parse_ways(std::string_view text);
Carrier parse_carrier(std::string_view text);
Backend parse_backend(std::string_view text);

}  // namespace dtool::trainer
