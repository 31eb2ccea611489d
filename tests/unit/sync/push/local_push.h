// SPDX-License-Identifier: MIT
// What the tests of a push share: pushes as `dtool run` makes them, to this machine under another
// name.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ssh/fanout/fleet.h"
#include "sync/push/push.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::tree_sync {

/// Remembers what it was told.
struct Told : ssh::Events {
  void on_progress(std::size_t host, const ssh::Transferred& what) override { sent[host] = what; }
  void on_result(std::size_t host, const ssh::HostResult& result) override {
    order.push_back(host);
    results[host] = result;
  }

  std::vector<std::size_t> order;
  std::map<std::size_t, ssh::Transferred> sent;
  std::map<std::size_t, ssh::HostResult> results;
  std::map<std::size_t, Pushed> pushed;
};

/// Sends the tree to all destinations and waits for them; results in their order.
inline std::vector<ssh::HostResult> push(ssh::Remote& remote, const Tree& tree,
                                         const std::vector<Destination>& destinations, Told& told,
                                         Relay relay = Relay::no,
                                         Foreign foreign = Foreign::refuse) {
  const auto pushing = make_push(remote.hosts(), tree, destinations, told, {}, relay, foreign);
  std::vector<ssh::Task> tasks;
  for (const Destination& each : destinations) tasks.push_back(pushing->first_task(each.host));
  remote.run(std::move(tasks), *pushing, {});
  auto results = pushing->finish(remote);
  for (const Destination& each : destinations) told.pushed[each.host] = pushing->pushed(each.host);
  return results;
}

/// Hands on what a remote tells, so that a test may change some of it.
struct HandsOn : ssh::Events {
  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override {
    to->on_output(host, stream, bytes);
  }
  void on_progress(std::size_t host, const ssh::Transferred& input) override {
    to->on_progress(host, input);
  }
  void on_result(std::size_t host, const ssh::HostResult& result) override {
    to->on_result(host, result);
  }

  ssh::Events* to = nullptr;
};

/// This machine under another name, so that it is sent what a host over the network is.
struct Elsewhere : ssh::Remote {
  const std::vector<ssh::Host>& hosts() const override { return names; }
  bool interrupted() const override { return real->interrupted(); }
  std::vector<ssh::HostResult> run(std::vector<ssh::Task> tasks, ssh::Events& events,
                                   const ssh::RunOptions& options) override {
    return real->run(std::move(tasks), events, options);
  }

  std::vector<ssh::Host> names = {ssh::parse_host("elsewhere")};
  std::unique_ptr<ssh::Remote> real = ssh::make_fleet({ssh::parse_host("local")}, {});
};

/// A guess that goes along with the question is a package; the rest comes in parcels.
enum class Way { parcels, package };

/// A real push to `local`, with this folder's `home` as HOME.
class LocalPushTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(scratch_.path() / "home");
    ::setenv("HOME", (scratch_.path() / "home").c_str(), 1);
  }

  ssh::HostResult push_to(const std::string& folder, const std::string& tree = "tree",
                          Foreign foreign = Foreign::refuse) {
    Elsewhere elsewhere;
    ssh::Remote& remote = way_ == Way::parcels ? *elsewhere.real : elsewhere;
    told_ = {};
    const Tree sent = read_tree(scratch_.path() / tree, {});
    return push(remote, sent, {{0, folder}}, told_, Relay::no, foreign).at(0);
  }
  const Pushed& pushed() { return told_.pushed[0]; }

  /// Every file and link below `home/NAME`, and every folder with nothing in it.
  std::vector<std::string> there(const std::string& name = "code") const {
    std::vector<std::string> names;
    const std::filesystem::path root = scratch_.path() / "home" / name;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      const bool is_folder = entry.is_directory() && !entry.is_symlink();
      if (is_folder && !std::filesystem::is_empty(entry)) continue;
      names.push_back(entry.path().lexically_relative(root).native() + (is_folder ? "/" : ""));
    }
    std::ranges::sort(names);
    return names;
  }

  std::filesystem::path manifest() const {
    for (const auto& entry :
         std::filesystem::directory_iterator(scratch_.path() / "home/.dtool/trees")) {
      if (entry.path().extension() == ".manifest") return entry.path();
    }
    throw std::runtime_error("no manifest");
  }

  tests::TemporaryFolder scratch_;
  Told told_;
  Way way_ = Way::parcels;
};

#define EXPECT_OK(result)                                                          \
  do {                                                                             \
    const ssh::HostResult each = result;                                           \
    EXPECT_TRUE(each.ok()) << each.error << "\n" << each.hint << "\n" << each.err; \
  } while (false)

}  // namespace dtool::tree_sync
