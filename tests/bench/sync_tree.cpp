// SPDX-License-Identifier: MIT
// Sends a folder to hosts as `dtool run` does, and nothing else: what tests/bench/sync measures.
// Prints the seconds from the first connection to all hosts' answers, and of the sending alone.
//
//     sync_tree cold|connected FOLDER PLACE HOSTS    PLACE on the hosts: absolute or from ~/
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>

#include "ssh/fanout/fleet.h"
#include "ssh/host.h"
#include "sync/push/push.h"
#include "sync/tree.h"

namespace dtool {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double cpu_seconds() {
  double total = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    for (const timeval& each : {usage.ru_utime, usage.ru_stime})
      total += static_cast<double>(each.tv_sec) + static_cast<double>(each.tv_usec) / 1e6;
  }
  return total;
}

int send(const std::string& start, const std::string& folder, const std::string& place,
         const std::string& hosts, tree_sync::Relay relay) {
  ssh::ConnectOptions connect;
  connect.width = 1000;
  const auto remote = ssh::make_fleet(ssh::parse_hosts(hosts, {}), connect);
  if (start == "connected") {
    std::vector<ssh::Task> tasks;
    for (std::size_t i = 0; i < remote->hosts().size(); ++i)
      tasks.push_back({i, ssh::Command{"true"}});
    ssh::Events nobody;
    remote->run(std::move(tasks), nobody, {});
  }
  const double cpu = cpu_seconds();
  const auto begin = std::chrono::steady_clock::now();
  const tree_sync::Tree tree = tree_sync::read_tree(folder, {});
  std::vector<tree_sync::Destination> destinations;
  for (std::size_t i = 0; i < remote->hosts().size(); ++i) destinations.push_back({i, place});
  ssh::Events nobody;
  int failed = 0;
  const auto pushing = tree_sync::make_push(remote->hosts(), tree, destinations, nobody, {}, relay);
  std::vector<ssh::Task> tasks;
  for (const auto& each : destinations) tasks.push_back(pushing->first_task(each.host));
  remote->run(std::move(tasks), *pushing, {});
  for (const ssh::HostResult& result : pushing->finish(*remote)) {
    if (result.ok()) continue;
    ++failed;
    fmt::print(stderr, "{}: {} {}\n", result.host.name, result.error, result.hint);
  }
  for (const tree_sync::Missed& missed : pushing->missed())
    fmt::print(stderr, "{}: not passed on: {}\n", missed.host, missed.reason);
  fmt::print("{:.3f} {:.3f}\n", seconds_since(begin), cpu_seconds() - cpu);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace dtool

int main(int count, char** arguments) {
  if (count > 1 && std::string(arguments[1]) == "remote_shell")
    return dtool::ssh::remote_shell({arguments + 2, arguments + count});
  const bool is_relayed = count == 6 && std::string(arguments[5]) == "relay";
  if (count != 5 && !is_relayed) {
    fmt::print(stderr, "usage: sync_tree cold|connected FOLDER PLACE HOSTS [relay]\n");
    return 2;
  }
  try {
    return dtool::send(arguments[1], arguments[2], arguments[3], arguments[4],
                       is_relayed ? dtool::tree_sync::Relay::yes : dtool::tree_sync::Relay::no);
  } catch (const std::exception& error) {
    fmt::print(stderr, "sync_tree: {}\n", error.what());
    return 2;
  }
}
