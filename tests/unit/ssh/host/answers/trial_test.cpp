// SPDX-License-Identifier: MIT
// Whether a host can listen, and whether another one reaches it, over loopback.
#include "ssh/host/answers/answers.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <functional>
#include <iostream>
#include <stdexcept>

#include "killfiles/channel/channel.h"
#include "ssh/host/child.h"
#include "ssh/host/network.h"
#include "ssh/host/process_table.h"
#include "ssh/host/session/job.h"
#include "tests/unit/few_descriptors.h"
#include "tests/unit/refused_calls.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

const std::string kTrialToken(32, 'a');

long count_children() {
  return std::ranges::count(read_processes(), ::getpid(), &Process::parent);
}

class TrialTest : public testing::Test {
 protected:
  TrialTest() {
    const Descriptor listener = listen_on(0);
    port_ = port_of(listener);
  }
  ~TrialTest() override {
    for (const pid_t each : processes_) {
      ::kill(each, SIGKILL);
      wait_for_child(each);
    }
  }

  ListenReply listen(std::int64_t port, std::int64_t seconds = 60) {
    ListenReply reply = listen_for_trial({"127.0.0.1", port, {kTrialToken}, 2, seconds});
    if (reply.pid != 0) processes_.push_back(static_cast<pid_t>(reply.pid));
    return reply;
  }

  ReachReply reach(const std::string& token = kTrialToken, std::int64_t timeout_ms = 20'000) const {
    return reach_for_trial({"127.0.0.1", port_, {token}, 1, timeout_ms});
  }

  /// Another program at the port, which does this with the first one who comes.
  void serve(const std::function<void(int socket, const std::string& hello)>& answer) {
    const Descriptor listener = listen_on(port_);
    ASSERT_TRUE(listener.is_open());
    const pid_t child = ::fork();
    if (child != 0) return processes_.push_back(child);
    pollfd come{listener.get(), POLLIN, 0};
    ::poll(&come, 1, 20'000);
    const int socket = ::accept(listener.get(), nullptr, nullptr);
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    std::string hello(kHelloSize, '\0');
    ::recv(socket, hello.data(), hello.size(), MSG_WAITALL);
    answer(socket, hello);
    char byte = 0;
    ::recv(socket, &byte, 1, 0);
    ::_exit(0);
  }

  std::uint16_t port_ = 0;
  std::vector<pid_t> processes_;
};

TEST_F(TrialTest, WhoListensIsReachedByWhoKnowsTheToken) {
  const ListenReply listening = listen(port_);
  ASSERT_GT(listening.pid, 0);
  EXPECT_EQ(listening.fault, "");
  EXPECT_EQ(listening.interface, "lo");
  EXPECT_EQ(::getsid(static_cast<pid_t>(listening.pid)), listening.pid) << "it outlives the login";
  const ReachReply reached = reach();
  EXPECT_TRUE(reached.is_reached);
  EXPECT_EQ(reached.fault, "");
  EXPECT_EQ(reached.interface, "lo");
  const ReachReply stranger = reach(std::string(32, 'b'));
  EXPECT_FALSE(stranger.is_reached);
  EXPECT_EQ(stranger.fault, "something else listens there");
}

TEST_F(TrialTest, WhoListensEndsByItself) {
  const ListenReply listening = listen(port_, 0);
  EXPECT_EQ(wait_for_child(static_cast<pid_t>(listening.pid), 20s), 0);
  processes_.clear();
}

TEST_F(TrialTest, APortThatIsTakenIsSaidToBeAndNothingStays) {
  const long before = count_children();
  const Descriptor other = listen_on(port_);
  const ListenReply listening = listen(port_);
  EXPECT_EQ(listening.pid, 0);
  EXPECT_EQ(listening.fault, "Address already in use");
  EXPECT_EQ(count_children(), before);
}

TEST_F(TrialTest, APortIsANumberOfOne) {
  for (const std::int64_t port : {0, 65'536}) {
    EXPECT_EQ(listen(port).fault, "there is no such port") << port;
    EXPECT_THROW(reach_for_trial({"127.0.0.1", port, {kTrialToken}, 1, 1000}), std::runtime_error);
  }
  for (const std::int64_t port : {1, 65'535})
    EXPECT_EQ(reach_for_trial({"127.0.0.1", port, {kTrialToken}, 1, 20'000}).fault,
              "connection refused")
        << port;
}

TEST_F(TrialTest, WithoutDescriptorsItSaysSo) {
  const tests::FewDescriptors none(0);
  EXPECT_EQ(reach().fault, "too many open files");
  try {
    listen(port_);
    FAIL() << "there is no pipe";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "no pipe: Too many open files");
  }
}

TEST_F(TrialTest, WithoutAProcessThatListensItSaysSo) {
  EXPECT_EXIT(
      {
        tests::refuse_processes(EAGAIN);
        try {
          listen(port_);
        } catch (const std::runtime_error& error) {
          std::cerr << error.what();
          ::_exit(0);
        }
        ::_exit(1);
      },
      testing::ExitedWithCode(0), "^no process can be made: Resource temporarily unavailable$");
}

TEST_F(TrialTest, NobodyWhoListensIsNotReached) {
  const ReachReply reached = reach();
  EXPECT_FALSE(reached.is_reached);
  EXPECT_EQ(reached.fault, "connection refused");
}

TEST_F(TrialTest, WhoSaysNothingIsNotReached) {
  const Descriptor silent = listen_on(port_);
  EXPECT_EQ(reach(kTrialToken, 100).fault, "no answer");
}

TEST_F(TrialTest, WhoProvesNothingIsSomethingElse) {
  serve([](int socket, const std::string& /*hello*/) {
    const std::string words(kWelcomeSize, 'x');
    ::send(socket, words.data(), words.size(), MSG_NOSIGNAL);
  });
  EXPECT_EQ(reach().fault, "something else answers there");
}

TEST_F(TrialTest, AWelcomeMayComeInPieces) {
  serve([](int socket, const std::string& hello) {
    const std::string welcome = make_welcome(kTrialToken, hello) + "more";
    ::send(socket, welcome.data(), 1, MSG_NOSIGNAL);
    host::pause(50ms);
    ::send(socket, welcome.data() + 1, welcome.size() - 1, MSG_NOSIGNAL);
  });
  EXPECT_EQ(reach().fault, "");
}

TEST_F(TrialTest, WithoutAnAddressNothingIsTried) {
  const ReachReply reached = reach_for_trial({"", 0, {kTrialToken}, 1, 1000});
  EXPECT_FALSE(reached.is_reached);
  EXPECT_EQ(reached.fault, "");
  try {
    reach_for_trial({"localhost", port_, {kTrialToken}, 1, 1000});
    FAIL() << "it is a name";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "localhost is no numeric address");
  }
}

TEST_F(TrialTest, TheClockIsThatOfTheHost) {
  const auto nanoseconds = [] {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  };
  const std::int64_t before = nanoseconds();
  const std::int64_t told = tell_clock().nanoseconds;
  EXPECT_LE(before, told);
  EXPECT_LE(told, nanoseconds());
}

}  // namespace
}  // namespace dtool::host
