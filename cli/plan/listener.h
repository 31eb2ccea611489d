// SPDX-License-Identifier: MIT
// Numbers and addresses of a run that a user types: where rank 0 listens, processes per machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/host_options.h"

namespace dtool::cli {

struct ListenerAddress {
  std::string address;
  std::uint16_t port = 0;
};

/// `--distributed_ip_and_port IP:PORT` ([v6]:PORT). The host must be the first target, which runs
/// rank 0: its name, or its address in the SSH configuration. Throws UsageError.
ListenerAddress parse_listener(const std::string& text, const Targets& targets);

/// Whether the name or address can only mean the machine on which it is used.
bool is_loopback(const std::string& name);

/// If the first target is this machine: the name or address, by the SSH configuration, of the first
/// that is another. The way there tells this machine's own address for the others. Else empty.
std::string peer_of(const Targets& targets);

/// `--nproc_per_node N`. Throws UsageError.
int parse_processes(const std::string& text);

}  // namespace dtool::cli
