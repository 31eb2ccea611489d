// SPDX-License-Identifier: MIT
// Hosts that pass a tree on to each other: several folders of this machine, each as a host of its
// own.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "killfiles/channel/channel.h"
#include "ssh/fanout/fleet.h"
#include "ssh/host/network.h"
#include "ssh/wire/copy.h"
#include "ssh/wire/protocol.h"
#include "ssh/wire/tree.h"
#include "sync/push/push.h"
#include "tests/unit/fake_remote.h"
#include "tests/unit/sync/push/local_push.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHosts = 3;

/// This machine under other names, so that it is sent what hosts over the network are; counts how
/// often a package leaves the launcher.
struct ThreeHosts : ssh::Remote, HandsOn {
  const std::vector<ssh::Host>& hosts() const override { return names; }
  bool interrupted() const override { return real->interrupted(); }
  std::vector<ssh::HostResult> run(std::vector<ssh::Task> tasks, ssh::Events& events,
                                   const ssh::RunOptions& options) override {
    to = &events;
    return real->run(std::move(tasks), *this, options);
  }

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override {
    if (stream == ssh::Stream::err) return to->on_output(host, stream, bytes);
    frames[host].add(bytes);
    while (auto frame = frames[host].next()) {
      if (frame->kind == host::Kind::tree_news) {
        auto news = host::open<host::TreeNews>(*frame);
        if (news.port != 0 && change_news) change_news(news);
        if (news.listens) heard += names[host].name + ":" + std::to_string(news.port) + " ";
        frame->body = host::encode(news);
      }
      to->on_output(host, stream, host::to_frame(frame->kind, frame->body));
    }
  }
  /// Hosts go on once all have answered the question: on a busy machine the first could be through
  /// before the others ask.
  std::optional<ssh::NextTask> next_task(std::size_t host, const ssh::HostResult& result) override {
    if (!answers.contains(host)) answers[host] = result;
    if (answers.size() < kHosts) return ssh::NextTask{std::nullopt, std::chrono::milliseconds(5)};
    if (const auto answer = std::exchange(answers[host], std::nullopt)) return go_on(host, *answer);
    return go_on(host, result);
  }
  std::optional<ssh::NextTask> go_on(std::size_t host, const ssh::HostResult& result) {
    const std::string said = result.out + result.err;
    auto next = to->next_task(host, result);
    if (!next || !next->task) return next;
    const auto* command = std::get_if<ssh::Command>(&next->task->step);
    before[host] += said;
    const auto frame = tests::frame_of(command->input);
    if (frame.kind == host::Kind::parcel_request) {
      const auto request = host::open<host::ParcelRequest>(frame);
      if (request.relay && on_secret) on_secret(request.relay->secret.text);
      if (request.relay) parcels.insert(request.relay->number);
    }
    sent += command->input_from != nullptr ? 1 : 0;
    return next;
  }

  std::vector<ssh::Host> names = {ssh::parse_host("a"), ssh::parse_host("b"), ssh::parse_host("c")};
  std::unique_ptr<ssh::Remote> real =
      ssh::make_fleet(std::vector<ssh::Host>(kHosts, ssh::parse_host("local")), {});
  std::map<std::size_t, std::optional<ssh::HostResult>> answers;
  std::size_t sent = 0;            ///< parcels from here
  std::set<std::int64_t> parcels;  ///< that hosts pass on
  std::string heard;  ///< where which host serves; port 0: it does not, or not any more
  std::map<std::size_t, std::string> before;  ///< what each host said so far
  /// What a hostile host says instead of where it is found.
  std::function<void(host::TreeNews&)> change_news;
  std::function<void(const std::string&)> on_secret;
  std::map<std::size_t, host::FrameReader> frames;
};

/// Hands out other bytes to whoever comes.
class HostileServer {
 public:
  HostileServer() : listener_(host::listen_on(0)), thread_([this] { serve(); }) {}
  ~HostileServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    is_over_ = true;
    thread_.join();
  }
  std::uint16_t port() const { return host::port_of(listener_); }
  /// It is in the place of a host with that secret.
  void add(const std::string& secret) {
    const std::lock_guard lock(mutex_);
    secrets_.insert(secret);
  }

 private:
  void serve() {
    while (!is_over_) {
      pollfd polled{listener_.get(), POLLIN, 0};
      ::poll(&polled, 1, 100);
      const host::Descriptor guest(::accept(listener_.get(), nullptr, nullptr));
      if (!guest.is_open()) continue;
      std::string bytes(3'100'000, 'x');
      std::string hello(host::kHelloSize, '\0');
      ::recv(guest.get(), hello.data(), hello.size(), MSG_WAITALL);
      const std::lock_guard lock(mutex_);
      for (const std::string& secret : secrets_) {
        if (!host::read_hello(secret, hello)) continue;
        const std::string welcome = host::make_welcome(secret, hello);
        ::send(guest.get(), welcome.data(), welcome.size(), MSG_NOSIGNAL);
      }
      ::send(guest.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      ::recv(guest.get(), bytes.data(), 1, 0);  // until it has had enough
    }
  }

  std::mutex mutex_;
  std::set<std::string> secrets_;
  host::Descriptor listener_;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

class RelayPushTest : public ::testing::Test {
 protected:
  /// As the hosts' sshd tells them: how they were reached.
  void push_random_bytes(std::size_t bytes) {
    std::mt19937 random(7);
    std::string text(bytes, '\0');
    for (char& byte : text) byte = static_cast<char>(random());
    scratch_.write("tree/random", text);
    scratch_.write("tree/deep/small", "small");
    std::vector<Destination> places;
    for (std::size_t i = 0; i < kHosts; ++i) places.push_back({i, folder(i)});
    ssh::Events nobody;
    const auto pushing = make_push(remote_.names, tree(), places, nobody, {}, Relay::yes);
    std::vector<ssh::Task> tasks;
    for (std::size_t i = 0; i < kHosts; ++i) tasks.push_back(pushing->first_task(i));
    remote_.run(std::move(tasks), *pushing, {});
    results_ = pushing->finish(remote_);
    missed_ = pushing->missed();
  }

  const Tree& tree() {
    tree_ = read_tree(scratch_.path() / "tree", {});
    return tree_;
  }
  std::string folder(std::size_t host) const {
    return (scratch_.path() / ("host" + std::to_string(host))).native();
  }
  void expect_tree_everywhere() {
    for (std::size_t i = 0; i < kHosts; ++i) {
      EXPECT_TRUE(results_.at(i).ok()) << results_[i].error;
      const fs::path name = "host" + std::to_string(i);
      EXPECT_EQ(scratch_.read(name / "random"), scratch_.read("tree/random"));
      EXPECT_EQ(scratch_.read(name / "deep/small"), "small");
      const auto left = std::distance(fs::directory_iterator(folder(i)), fs::directory_iterator{});
      EXPECT_EQ(left, 2) << "nothing of the way is left behind";
    }
  }

  tests::TemporaryFolder scratch_;
  tests::TemporaryVariable home_{"HOME", scratch_.write("home/.keep").parent_path()};
  tests::TemporaryVariable connection_{"SSH_CONNECTION", "127.0.0.1 40000 127.0.0.1 22"};
  ThreeHosts remote_;
  Tree tree_;
  std::vector<ssh::HostResult> results_;
  std::vector<Missed> missed_;
};

TEST_F(RelayPushTest, OneHostHasItFromHereAndTheOthersFromHosts) {
  push_random_bytes(20'000'000);
  expect_tree_everywhere();
  // A host that this busy machine held up for long is helped from here.
  EXPECT_LT(remote_.sent, 2 * remote_.parcels.size()) << remote_.heard;
  EXPECT_TRUE(missed_.empty()) << missed_.front().reason;
}

TEST_F(RelayPushTest, LittleComesFromHereAtOnce) {
  push_random_bytes(3'000);
  expect_tree_everywhere();
  EXPECT_EQ(remote_.sent, 3U);
  EXPECT_TRUE(remote_.parcels.empty());
  EXPECT_TRUE(missed_.empty());
}

TEST_F(RelayPushTest, AHostThatIsGivenOtherBytesUnpacksNoneOfThemAndHasItFromHere) {
  HostileServer server;
  remote_.on_secret = [&](const std::string& secret) { server.add(secret); };
  remote_.change_news = [&](host::TreeNews& news) { news.port = server.port(); };
  push_random_bytes(3'000'000);
  expect_tree_everywhere();
  EXPECT_GT(remote_.sent, remote_.parcels.size());
  ASSERT_FALSE(missed_.empty());
  EXPECT_NE(missed_[0].reason.find("is not the package"), std::string::npos) << missed_[0].reason;
}

TEST_F(RelayPushTest, HostsThatDoNotReachEachOtherHaveItFromHere) {
  const tests::TemporaryVariable nowhere("SSH_CONNECTION", "127.0.0.1 40000 127.0.0.2 22");
  remote_.change_news = [](host::TreeNews& news) { news.port = 1; };  // refused
  push_random_bytes(3'000'000);
  expect_tree_everywhere();
  ASSERT_FALSE(missed_.empty());
  EXPECT_NE(missed_[0].reason.find("no connection to 127.0.0.2:1"), std::string::npos)
      << missed_[0].reason;
}

}  // namespace
}  // namespace dtool::tree_sync
