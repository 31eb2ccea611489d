// SPDX-License-Identifier: MIT
// What `dtool-trainer comm` measured: the rows of its comm.jsonl, as curves over the bytes of a
// message.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/plot/metrics.h"

namespace dtool::cli {

/// For each algorithm, in the file's order, its curves: `OPERATION_us` (median) and
/// `OPERATION_gb_per_s` (bus bandwidth). Messages between machines are told apart from those within
/// one: `send_recv_2_machines_us`. Nothing where the text has no such rows; other lines and
/// operations without bytes are passed over.
std::vector<std::pair<std::string, Metrics>> read_comm_rows(std::string_view text);

}  // namespace dtool::cli
