// SPDX-License-Identifier: MIT
#include "ssh/host/session/port_holder.h"

#include <unistd.h>

#include <cassert>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/network.h"
#include "ssh/host/own_program.h"
#include "ssh/host/process_table.h"
#include "ssh/host/session/report.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

constexpr Time kLongestHold = 1h;
constexpr Time kBetweenChecks = 200ms;

/// The process that has started this one and the shells before it: they have one process group.
Process find_above() {
  const auto first = find_process(::getpgrp());
  return first ? find_process(first->parent).value_or(Process()) : Process();
}

void start_holder(const Descriptor& socket, const std::string& run_folder) {
  const Process above = find_above();
  if (above.pid <= 1) return;  // the connection has gone already, or nothing would tell its end
  start_detached(
      {own_path(), "hold", run_folder, std::to_string(above.pid), std::to_string(above.start)}, "/",
      socket, run_folder.substr(folder_of(run_folder).size() + 1));
}

}  // namespace

std::uint16_t hold_free_port(const std::set<std::uint16_t>& taken, const std::string& run_folder) {
  Descriptor socket;
  const std::uint16_t port = find_port([&](std::uint16_t each) {
    if (!taken.contains(each)) socket = hold_port(each);
    return socket.is_open();
  });
  assert((port != 0) == socket.is_open() && !taken.contains(port));
  if (port != 0) start_holder(socket, run_folder);
  return port;
}

int run_port_holder(const std::string& run_folder, const std::string& pid,
                    const std::string& start) {
  const auto above = parse_number<pid_t>(pid).value_or(0);
  const auto above_start = parse_number<std::uint64_t>(start).value_or(0);
  const Time end = time_since_boot() + kLongestHold;
  const auto is_awaited = [&] {
    if (above != 0) {
      const auto found = find_process(above, above_start);
      if (!found || found->is_dead()) return false;
    }
    const std::string state = run_folder + "/machine0";
    return is_folder(run_folder) && !exists(state + "/supervision") && !exists(state + "/begun");
  };
  while (is_awaited() && time_since_boot() < end) pause(kBetweenChecks);
  return 0;
}

}  // namespace dtool::host
