// SPDX-License-Identifier: MIT
// Both ends of the reports over real sockets of this machine's loopback, and strangers at the port.
// The clock is handed in.
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <map>

#include "ssh/host/network.h"
#include "ssh/host/session/report_link.h"
#include "ssh/host/session/report_port.h"
#include "tests/unit/few_descriptors.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

const std::string kToken(32, 'a');

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

/// Someone at the port who knows no token.
Descriptor connect_to(std::uint16_t port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
  ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
  return socket;
}

std::size_t count_said(int socket) {
  std::string bytes(4096, '\0');
  const ssize_t size = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
  return size > 0 ? static_cast<std::size_t>(size) : 0;
}

class ReportsOverTcp : public testing::Test {
 protected:
  ReportsOverTcp() { ::sigemptyset(&none_); }

  static constexpr int kPlaces = 5;

  void listen(std::uint16_t port = 0) { port_.emplace(port, kPlaces, kToken, watch_); }

  ReportLink& link(int place, const std::string& token = kToken) {
    const Supervision settings{
        place, "h", kPlaces, 0, 60s, "127.0.0.1", port_ ? port_->port() : closed_port_, {}};
    return links_.emplace_back(settings, token, watch_, now_);
  }

  /// Lets both ends do what they can, until `is_enough`, in at most two real seconds.
  template <typename Condition>
  bool until(Condition is_enough) {
    for (int i = 0; i < 200; ++i) {
      if (is_enough()) return true;
      for (ReportLink& each : links_) {
        if (auto loss = each.turn(now_)) losses_.push_back(*loss);
      }
      if (port_) port_->turn(now_);
      for (const int each : watch_.wait(10ms, none_)) {
        if (port_) {
          for (const PlacedReport& placed : port_->take(each, now_)) heard_.push_back(placed);
        }
        for (ReportLink& link : links_) {
          if (auto decision = link.take(each, now_)) decisions_[&link] = *decision;
        }
      }
    }
    return is_enough();
  }
  void let_pass() {
    int rounds = 0;
    until([&rounds] { return ++rounds > 20; });
  }

  sigset_t none_;
  Watch watch_;
  std::uint16_t closed_port_ = 1;
  std::optional<ReportPort> port_;
  std::list<ReportLink> links_;
  Time now_ = 1000s;
  std::vector<PlacedReport> heard_;
  std::vector<std::string> losses_;
  std::map<ReportLink*, Decision> decisions_;
};

const Report kRunningReport{0, Standing::running};

TEST_F(ReportsOverTcp, ReportsComeAndDecisionsGo) {
  listen();
  for (int place = 1; place < kPlaces; ++place) link(place).tell(kRunningReport, now_);
  ASSERT_TRUE(until([this] { return heard_.size() == kPlaces - 1 && decisions_.size() == 4; }));
  EXPECT_EQ(port_->count_machines(), 4U);
  EXPECT_EQ(port_->count_guests(), 0U);
  const Decision first{0, Verb::run, {}, {}};
  for (const auto& [each, decision] : decisions_) EXPECT_EQ(decision, first);
  // A decision is told at once, unasked.
  decisions_.clear();
  const Decision end{0, Verb::end, {}, "sick"};
  port_->decide(end);
  EXPECT_EQ(port_->count_machines(), 4U);
  ASSERT_TRUE(until([this] { return decisions_.size() == 4; }));
  for (const auto& [each, decision] : decisions_) EXPECT_EQ(decision, end);
  // And so is a report.
  heard_.clear();
  const Report gone{0, Standing::gone, 143, "sick"};
  links_.front().tell(gone, now_);
  EXPECT_FALSE(links_.front().is_told());
  ASSERT_TRUE(until([this] { return links_.front().is_told(); }));
  ASSERT_EQ(heard_.size(), 1U);
  EXPECT_EQ(heard_[0].place, 1);
  EXPECT_EQ(heard_[0].report, gone);
}

TEST_F(ReportsOverTcp, SignsOfLifeGoBothWays) {
  listen();
  link(1).tell(kRunningReport, now_);
  ASSERT_TRUE(until([this] { return heard_.size() == 1 && links_.front().is_told(); }));
  for (int i = 0; i < 100; ++i) {
    heard_.clear();
    now_ += 4s;
    ASSERT_TRUE(until([this] { return heard_.size() == 1 && links_.front().is_told(); })) << i;
  }
  EXPECT_TRUE(losses_.empty());
  EXPECT_EQ(port_->count_machines(), 1U);
}

TEST_F(ReportsOverTcp, AConnectionThatBreaksIsMadeAgain) {
  listen();
  link(1).tell(kRunningReport, now_);
  ASSERT_TRUE(until([this] { return decisions_.size() == 1; }));
  const std::uint16_t port = port_->port();
  port_.reset();
  ASSERT_TRUE(until([this] { return !links_.front().is_told(); }));
  listen(port);
  port_->decide({1, Verb::run, {1}, {}});
  now_ += 1s;
  ASSERT_TRUE(until([this] { return decisions_[&links_.front()].attempt == 1; }));
  EXPECT_TRUE(losses_.empty());
}

TEST_F(ReportsOverTcp, AMachineThatComesAgainTakesItsOldPlace) {
  listen();
  link(1).tell(kRunningReport, now_);
  ASSERT_TRUE(until([this] { return heard_.size() == 1; }));
  link(1).tell({0, Standing::failed, 137, "its guard"}, now_);
  ASSERT_TRUE(until([this] { return heard_.size() == 2; }));
  EXPECT_EQ(port_->count_machines(), 1U);
  EXPECT_EQ(heard_[1].report.text, "its guard");
}

TEST_F(ReportsOverTcp, APortThatRefusesForFiveSecondsIsNobodys) {
  listen();
  closed_port_ = port_->port();
  port_.reset();
  link(1).tell(kRunningReport, now_);
  for (int i = 0; i < 20 && losses_.empty(); ++i) {
    EXPECT_LT(i, 8) << "seconds";
    let_pass();
    if (i < 4) {
      EXPECT_TRUE(losses_.empty()) << i;
    }
    now_ += 1s;
  }
  ASSERT_EQ(losses_.size(), 1U);
  EXPECT_EQ(losses_[0], "nothing listens at 127.0.0.1:" + std::to_string(closed_port_) +
                            ": the session on machine 0 is gone");
}

TEST_F(ReportsOverTcp, WhoIsRefusedAsTheRunBeginsTriesAgainWithinASecond) {
  listen();
  closed_port_ = port_->port();
  port_.reset();
  ReportLink& early = link(1);
  early.tell(kRunningReport, now_);
  ASSERT_TRUE(until([&] { return early.time_to_next_try(now_) > 0ms; }));
  EXPECT_LE(early.time_to_next_try(now_), 400ms);
  listen(closed_port_);
  now_ += *early.time_to_next_try(now_);
  ASSERT_TRUE(until([this] { return !heard_.empty(); }));
  EXPECT_FALSE(early.time_to_next_try(now_));
}

/// Listens as machine 0 would, and says what it is told to.
class FalseMachineZero {
 public:
  FalseMachineZero() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(0);
    ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    ::listen(listener_.get(), 16);
    ::fcntl(listener_.get(), F_SETFL, O_NONBLOCK);
    socklen_t size = sizeof address;
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  std::uint16_t port() const { return port_; }
  void answer_all(const std::string& words) {
    Descriptor peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer.is_open()) return;
    ::send(peer.get(), words.data(), words.size(), MSG_NOSIGNAL);
    peers_.push_back(std::move(peer));
  }

 private:
  Descriptor listener_;
  std::uint16_t port_ = 0;
  std::vector<Descriptor> peers_;
};

TEST_F(ReportsOverTcp, WhoAnswersWithoutAProofIsNotBelieved) {
  FalseMachineZero thief;
  closed_port_ = thief.port();
  link(1).tell(kRunningReport, now_);
  for (int i = 0; i < 10 && losses_.empty(); ++i) {
    let_pass();
    thief.answer_all(std::string(200, 'x'));
    now_ += 1s;
  }
  ASSERT_EQ(losses_.size(), 1U);
  EXPECT_EQ(losses_[0], "what answers at 127.0.0.1:" + std::to_string(thief.port()) +
                            " does not prove that it is the session on machine 0");
  EXPECT_TRUE(decisions_.empty());
}

TEST_F(ReportsOverTcp, AMachineZeroThatSaysNothingIsLostAfterAMinute) {
  FalseMachineZero silent;
  closed_port_ = silent.port();
  link(1).tell(kRunningReport, now_);
  for (int i = 0; i < 62 && losses_.empty(); ++i) {
    EXPECT_TRUE(i < 61) << "seconds";
    until([rounds = 0]() mutable { return ++rounds > 2; });
    silent.answer_all("");
    now_ += 1s;
  }
  ASSERT_EQ(losses_.size(), 1U);
  EXPECT_EQ(losses_[0], "machine 1 (h) has had no answer from machine 0 at 127.0.0.1:" +
                            std::to_string(silent.port()) + " for 60 s");
}

TEST_F(ReportsOverTcp, TimeInWhichThisProcessWasFrozenIsNoSilence) {
  FalseMachineZero silent;
  closed_port_ = silent.port();
  link(1).tell(kRunningReport, now_);
  let_pass();
  now_ += 1000s;
  let_pass();
  EXPECT_TRUE(losses_.empty());
}

TEST_F(ReportsOverTcp, WhoDoesNotKnowTheTokenIsNotHeard) {
  listen();
  link(1, std::string(32, 'b')).tell({0, Standing::failed, 1, "lies"}, now_);
  link(2).tell(kRunningReport, now_);
  ASSERT_TRUE(until([this] { return heard_.size() == 1; }));
  let_pass();
  EXPECT_EQ(heard_.size(), 1U);
  EXPECT_EQ(heard_[0].place, 2);
  // Nor a place that is no machine's, or machine 0's own.
  for (const int place : {0, kPlaces, 70'000}) {
    const Descriptor peer = connect_to(port_->port());
    const std::string hello = make_hello(kToken, place);
    ::send(peer.get(), hello.data(), hello.size(), MSG_NOSIGNAL);
    let_pass();
    EXPECT_EQ(count_said(peer.get()), 0U);
    EXPECT_EQ(port_->count_guests(), 0U);
  }
}

TEST_F(ReportsOverTcp, AnOverheardHelloLeadsNowhere) {
  listen();
  const Descriptor peer = connect_to(port_->port());
  const std::string hello = make_hello(kToken, 1);
  ::send(peer.get(), hello.data(), hello.size(), MSG_NOSIGNAL);
  ASSERT_TRUE(until([this] { return port_->count_guests() == 1; }));
  let_pass();
  EXPECT_EQ(count_said(peer.get()), kWelcomeSize);
  const std::string noise(300, '\0');
  ::send(peer.get(), noise.data(), noise.size(), MSG_NOSIGNAL);
  EXPECT_TRUE(until([this] { return port_->count_guests() == 0; }));
  EXPECT_TRUE(heard_.empty());
  EXPECT_EQ(count_said(peer.get()), 0U);
}

TEST_F(ReportsOverTcp, StrangersGetNoAnswerAndKeepNobodyAway) {
  listen();
  link(1).tell(kRunningReport, now_);
  ASSERT_TRUE(until([this] { return heard_.size() == 1; }));
  const std::vector<std::string> words = {
      std::string(524'288, 'x'), "",          "\n",
      "GET / HTTP/1.0\r\n",      "dtool 1\n", std::string(63, '\0')};
  std::vector<Descriptor> strangers;
  for (std::size_t i = 0; i < 600; ++i) {
    strangers.push_back(connect_to(port_->port()));
    const std::string& each = words[i % words.size()];
    ::send(strangers.back().get(), each.data(), each.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (i % 50 == 0) until([rounds = 0]() mutable { return ++rounds > 2; });
    EXPECT_LE(port_->count_guests(), 256U);
  }
  // Who is known is heard, and who is not yet known gets in.
  heard_.clear();
  links_.front().tell({0, Standing::failed, 7, "sick"}, now_);
  link(2).tell(kRunningReport, now_);
  ASSERT_TRUE(until([this] { return heard_.size() == 2; }));
  port_->decide({0, Verb::end, {}, "sick"});
  ASSERT_TRUE(until([this] {
    return std::ranges::all_of(
        links_, [this](ReportLink& each) { return decisions_[&each].verb == Verb::end; });
  }));
  for (const Descriptor& each : strangers) EXPECT_EQ(count_said(each.get()), 0U);
  now_ += 6s;
  EXPECT_TRUE(until([this] { return port_->count_guests() == 0; }));
  EXPECT_EQ(port_->count_machines(), 2U);
}

TEST_F(ReportsOverTcp, AStrangerIsCutOffAtItsFirstWrongWordAndForgottenOnceItGoes) {
  listen();
  const Descriptor wrong = connect_to(port_->port());
  ASSERT_TRUE(until([this] { return port_->count_guests() == 1; }));
  ::send(wrong.get(), "G", 1, MSG_NOSIGNAL);
  EXPECT_TRUE(until([this] { return port_->count_guests() == 0; }));
  Descriptor short_of_words = connect_to(port_->port());
  ASSERT_TRUE(until([this] { return port_->count_guests() == 1; }));
  short_of_words = Descriptor();
  EXPECT_TRUE(until([this] { return port_->count_guests() == 0; }));
}

TEST_F(ReportsOverTcp, AHelloMayComeInPieces) {
  listen();
  const Descriptor machine = connect_to(port_->port());
  const std::string hello = make_hello(kToken, 1);
  std::size_t sent = 0;
  for (const std::size_t end : {std::size_t{10}, kHelloSize - 1, kHelloSize}) {
    EXPECT_EQ(count_said(machine.get()), 0U) << "after " << sent << " bytes";
    ::send(machine.get(), hello.data() + sent, end - sent, MSG_NOSIGNAL);
    sent = end;
    let_pass();
    EXPECT_EQ(port_->count_guests(), 1U);
  }
  EXPECT_EQ(count_said(machine.get()), kWelcomeSize);
}

TEST_F(ReportsOverTcp, OfThoseWhoComeAtOnceSixtyFourAreLetInAndHeardBeforeOthersAreServed) {
  listen();
  std::vector<Descriptor> many;
  for (int i = 0; i < 70; ++i) {
    many.push_back(connect_to(port_->port()));
    const std::string hello = make_hello(kToken, 1);
    ::send(many.back().get(), hello.data(), hello.size(), MSG_NOSIGNAL);
  }
  const std::vector<int> ready = watch_.wait(1s, none_);
  ASSERT_EQ(ready.size(), 1U);
  port_->take(ready[0], now_);
  EXPECT_EQ(port_->count_guests(), 64U);
  EXPECT_EQ(std::ranges::count_if(
                many, [](const Descriptor& each) { return count_said(each.get()) != 0; }),
            64);
}

TEST_F(ReportsOverTcp, APortThatIsTakenIsSaidToBe) {
  listen();
  try {
    const ReportPort other(port_->port(), kPlaces, kToken, watch_);
    FAIL() << "two listen at one port";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "Address already in use");
  }
}

/// A machine 0 that does as the test says.
class HandmadeMachineZero {
 public:
  HandmadeMachineZero() : listener_(listen_on(0)) {}
  std::uint16_t port() const { return port_of(listener_); }

  /// Whether someone new has come.
  bool accept() {
    Descriptor peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!peer.is_open()) return false;
    peer_ = std::move(peer);
    hello_.clear();
    return true;
  }
  bool has_hello() {
    std::string bytes(kHelloSize - hello_.size(), '\0');
    const ssize_t size = ::recv(peer_.get(), bytes.data(), bytes.size(), 0);
    if (size > 0) hello_.append(bytes, 0, static_cast<std::size_t>(size));
    return hello_.size() == kHelloSize;
  }
  /// The welcome, and with it an answer to no report.
  std::string welcome(const Decision& decision) {
    const std::string bytes = make_welcome(kToken, hello_);
    channel_.emplace(kToken, hello_, bytes, End::coordinator, kLongestReport);
    return bytes + channel_->seal(to_bytes(Answer{0, decision}));
  }
  void send(std::string_view bytes) const {
    ::send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void close() { peer_ = Descriptor(); }

 private:
  Descriptor listener_;
  Descriptor peer_;
  std::string hello_;
  std::optional<Channel> channel_;
};

const Decision kSecondAttempt{1, Verb::run, {1, 2}, {}};

class ReportsToHandmade : public ReportsOverTcp {
 protected:
  ReportsToHandmade() {
    closed_port_ = zero_.port();
    link(1).tell(kRunningReport, now_);
  }
  ReportLink& mine() { return links_.front(); }
  bool is_greeted() {
    return until([this] { return zero_.accept(); }) && until([this] { return zero_.has_hello(); });
  }
  bool is_welcomed() {
    if (!is_greeted()) return false;
    zero_.send(zero_.welcome(kSecondAttempt));
    return until([this] { return decisions_.size() == 1; });
  }
  bool is_lost() {
    return until([this] { return mine().time_to_next_try(now_).has_value(); });
  }

  HandmadeMachineZero zero_;
};

TEST_F(ReportsToHandmade, AWelcomeMayComeInPiecesAndWithMoreBehindIt) {
  EXPECT_FALSE(mine().is_told());
  mine().tell({0, Standing::failed, 7, "sick"}, now_);
  ASSERT_TRUE(is_greeted());
  EXPECT_FALSE(mine().is_told()) << "nobody has proven anything yet";
  const std::string bytes = zero_.welcome(kSecondAttempt);
  zero_.send(bytes.substr(0, 10));
  let_pass();
  EXPECT_FALSE(mine().time_to_next_try(now_)) << "the rest may come";
  zero_.send(bytes.substr(10));
  ASSERT_TRUE(until([this] { return decisions_.size() == 1; }));
  EXPECT_EQ(decisions_[&mine()], kSecondAttempt);
  EXPECT_FALSE(mine().is_told()) << "the answer is to no report";
}

TEST_F(ReportsToHandmade, WhatIsNotSealedIsNotBelieved) {
  ASSERT_TRUE(is_welcomed());
  zero_.send(std::string("\0\0\0\4", 4) + std::string(100, 'x'));
  EXPECT_TRUE(is_lost());
}

TEST_F(ReportsToHandmade, AConnectionThatBroughtNoAnswerIsNotMadeAgainAtOnce) {
  ASSERT_TRUE(is_welcomed());
  zero_.close();
  ASSERT_TRUE(is_lost());
  EXPECT_EQ(mine().time_to_next_try(now_), 257ms);
  EXPECT_EQ(mine().time_to_next_try(now_ + 100s), 0ms);
}

TEST_F(ReportsToHandmade, AConnectionWithoutAWelcomeIsGivenUpAfterFiveSeconds) {
  ASSERT_TRUE(is_greeted());
  now_ += 5s;
  let_pass();
  EXPECT_FALSE(mine().time_to_next_try(now_));
  now_ += 1ms;
  EXPECT_TRUE(is_lost());
  now_ += *mine().time_to_next_try(now_);
  EXPECT_TRUE(until([this] { return zero_.accept(); })) << "it comes again";
}

TEST_F(ReportsToHandmade, AConnectionThatFallsSilentIsReplaced) {
  ASSERT_TRUE(is_welcomed());
  for (int i = 0; i < 3; ++i) {  // of the twelve seconds
    now_ += 4s;
    let_pass();
    EXPECT_FALSE(mine().time_to_next_try(now_)) << i;
  }
  now_ += 4s;
  EXPECT_TRUE(is_lost());
  now_ += *mine().time_to_next_try(now_);
  EXPECT_TRUE(until([this] { return zero_.accept(); }));
  EXPECT_TRUE(losses_.empty());
}

TEST_F(ReportsToHandmade, AFreezeBeginsAllWaitsAnew) {
  ASSERT_TRUE(is_welcomed());
  now_ += 1000s;
  let_pass();
  EXPECT_FALSE(mine().time_to_next_try(now_));
  zero_.close();
  ASSERT_TRUE(is_lost());
  now_ += 1000s;
  EXPECT_TRUE(until([this] { return zero_.accept(); }));
}

TEST_F(ReportsOverTcp, AConnectionThatWasGoodIsMadeAgainAtOnce) {
  listen();
  closed_port_ = port_->port();
  ReportLink& mine = link(1);
  mine.tell(kRunningReport, now_);
  ASSERT_TRUE(until([&] { return mine.is_told(); }));
  port_.reset();
  ASSERT_TRUE(until([&] { return mine.time_to_next_try(now_).has_value(); }));
  EXPECT_EQ(mine.time_to_next_try(now_), 132ms);
}

TEST_F(ReportsOverTcp, ANewReportIsReasonToConnectSooner) {
  listen();
  closed_port_ = port_->port();
  port_.reset();
  ReportLink& mine = link(1);
  mine.tell(kRunningReport, now_);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(until([&] { return mine.time_to_next_try(now_) > 0ms; }));
    if (i < 4) now_ += *mine.time_to_next_try(now_);
  }
  EXPECT_GT(mine.time_to_next_try(now_), 1s);
  mine.tell({0, Standing::failed, 7, "sick"}, now_);
  EXPECT_EQ(mine.time_to_next_try(now_), 250ms);
}

TEST_F(ReportsOverTcp, AMachineThatGoesIsForgotten) {
  listen();
  for (const int place : {1, 2}) link(place).tell(kRunningReport, now_);
  ASSERT_TRUE(until([this] { return port_->count_machines() == 2; }));
  links_.clear();
  EXPECT_TRUE(until([this] { return port_->count_machines() == 0; }));
  port_->decide({0, Verb::end, {}, "sick"});
  link(1).tell(kRunningReport, now_);
  EXPECT_TRUE(until([this] { return decisions_[&links_.front()].verb == Verb::end; }));
}

/// A machine that has proven itself, and may say anything.
class HandmadeMachine {
 public:
  HandmadeMachine(std::uint16_t port, int place)
      : socket_(connect_to(port)), hello_(make_hello(kToken, place)) {
    send(hello_);
  }
  bool is_welcome() {
    std::string bytes(kWelcomeSize - welcome_.size(), '\0');
    const ssize_t size = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (size > 0) welcome_.append(bytes, 0, static_cast<std::size_t>(size));
    if (welcome_.size() < kWelcomeSize) return false;
    channel_.emplace(kToken, hello_, welcome_, End::machine, kLongestAnswer);
    return true;
  }
  std::string seal(const std::string& body) { return channel_->seal(body); }
  void send(const std::string& bytes) const {
    ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  bool is_closed() const {
    char byte = 0;
    return ::recv(socket_.get(), &byte, 1, MSG_PEEK) == 0 || errno == ECONNRESET;
  }

 private:
  Descriptor socket_;
  std::string hello_;
  std::string welcome_;
  std::optional<Channel> channel_;
};

TEST_F(ReportsOverTcp, AMachineThatSaysWhatNoReportIsIsDropped) {
  listen();
  for (const bool is_first : {true, false}) {
    HandmadeMachine machine(port_->port(), 1);
    ASSERT_TRUE(until([&] { return machine.is_welcome(); }));
    heard_.clear();
    if (!is_first) {
      machine.send(machine.seal(to_bytes(kRunningReport)));
      ASSERT_TRUE(until([this] { return heard_.size() == 1; }));
      EXPECT_EQ(port_->count_machines(), 1U);
    }
    machine.send(machine.seal("no report"));
    EXPECT_TRUE(until([this] { return port_->count_machines() + port_->count_guests() == 0; }));
    EXPECT_EQ(heard_.size(), is_first ? 0U : 1U);
  }
}

TEST_F(ReportsOverTcp, AMachineThatSealsNothingIsDropped) {
  listen();
  HandmadeMachine machine(port_->port(), 1);
  ASSERT_TRUE(until([&] { return machine.is_welcome(); }));
  machine.send(machine.seal(to_bytes(kRunningReport)));
  ASSERT_TRUE(until([this] { return heard_.size() == 1; }));
  machine.send(std::string("\0\0\0\4", 4) + std::string(100, 'x'));
  EXPECT_TRUE(until([this] { return port_->count_machines() == 0; }));
  EXPECT_EQ(heard_.size(), 1U);
}

TEST_F(ReportsOverTcp, SeveralReportsMayComeTogetherAndInPieces) {
  listen();
  HandmadeMachine machine(port_->port(), 1);
  ASSERT_TRUE(until([&] { return machine.is_welcome(); }));
  std::string bytes = machine.seal(to_bytes(kRunningReport));
  bytes += machine.seal(to_bytes({0, Standing::failed, 7, "sick"}));
  machine.send(bytes.substr(0, 20));
  let_pass();
  EXPECT_EQ(port_->count_guests(), 1U) << "the rest may come";
  machine.send(bytes.substr(20));
  ASSERT_TRUE(until([this] { return heard_.size() == 2; }));
  EXPECT_EQ(heard_[1].report.text, "sick");
  bytes = machine.seal(to_bytes({0, Standing::gone, 7, "sick"}));
  machine.send(bytes.substr(0, 20));
  let_pass();
  EXPECT_EQ(port_->count_machines(), 1U);
  machine.send(bytes.substr(20));
  EXPECT_TRUE(until([this] { return heard_.size() == 3; }));
}

TEST_F(ReportsOverTcp, WhatComesWithAHelloIsLookedAt) {
  listen();
  const Descriptor peer = connect_to(port_->port());
  const std::string bytes = make_hello(kToken, 1) + std::string(300, '\0');
  ::send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  ASSERT_TRUE(until([&] { return count_said(peer.get()) == kWelcomeSize; }));
  EXPECT_TRUE(until([this] { return port_->count_guests() == 0; }));
}

TEST_F(ReportsOverTcp, WhoHasGreetedStaysWhereStrangersMakeRoom) {
  listen();
  HandmadeMachine machine(port_->port(), 1);
  ASSERT_TRUE(until([&] { return machine.is_welcome(); }));
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 300; ++i) {
    strangers.push_back(connect_to(port_->port()));
    if (i % 50 == 0) until([rounds = 0]() mutable { return ++rounds > 2; });
  }
  ASSERT_TRUE(until([this] { return port_->count_guests() == 256; }));
  let_pass();
  EXPECT_FALSE(machine.is_closed());
  const auto is_open = [](const Descriptor& each) {
    char byte = 0;
    return ::recv(each.get(), &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN;
  };
  EXPECT_FALSE(is_open(strangers.front())) << "the oldest one goes";
  EXPECT_TRUE(is_open(strangers.back()));
  EXPECT_EQ(std::ranges::count_if(strangers, is_open), 255);
  machine.send(machine.seal(to_bytes(kRunningReport)));
  EXPECT_TRUE(until([this] { return heard_.size() == 1; }));
}

TEST(GuestThatGoes, IsTheOldestOfTheAddressThatHasTheMostAndHasNotGreeted) {
  const GuestInLine other{7, "a", false, 1};
  const GuestInLine greeted{4, "b", true, 2};
  const GuestInLine older{6, "b", false, 3};
  const GuestInLine newer{5, "b", false, 4};
  EXPECT_EQ(choose_to_go({greeted, newer, older, other}), 6);
  EXPECT_EQ(choose_to_go({other, greeted, newer}), 5);
  EXPECT_EQ(choose_to_go({greeted, other}), 7);
  EXPECT_EQ(choose_to_go({greeted}), 4);
}

TEST(GuestThatGoes, IsNoneOfAMachinesRanksInAFloodFromManyAddresses) {
  std::vector<GuestInLine> guests;
  for (int i = 0; i < 60; ++i)
    guests.push_back({i, std::to_string(i), false, static_cast<std::uint64_t>(i) + 10});
  for (int i = 60; i < 68; ++i) guests.push_back({i, "machine", false, 1'000});
  EXPECT_EQ(choose_to_go(guests), 0);
  guests[0].has_greeted = true;
  EXPECT_EQ(choose_to_go(guests), 1);
  for (int i = 68; i < 100; ++i) guests.push_back({i, "one", true, 2'000});
  EXPECT_EQ(choose_to_go(guests), 68) << "which has more than a fourth";
}

TEST_F(ReportsOverTcp, GuestsHaveFiveSeconds) {
  listen();
  const Descriptor peer = connect_to(port_->port());
  ASSERT_TRUE(until([this] { return port_->count_guests() == 1; }));
  now_ += 5s;
  let_pass();
  EXPECT_EQ(port_->count_guests(), 1U);
  now_ += 1ms;
  let_pass();
  EXPECT_EQ(port_->count_guests(), 0U);
}

TEST_F(ReportsOverTcp, WithoutDescriptorsWhoCameFirstMakesRoomForWhoComesNow) {
  listen();
  for (const int place : {1, 2}) {
    link(place).tell(kRunningReport, now_);
    ASSERT_TRUE(until([&] { return port_->count_machines() == static_cast<std::size_t>(place); }));
  }
  const Descriptor waiting(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const tests::FewDescriptors none(0);
  const sockaddr_in address = loopback(port_->port());
  ::connect(waiting.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  EXPECT_TRUE(until([this] { return port_->count_guests() == 1; }));
  EXPECT_TRUE(until([this] { return links_.front().time_to_next_try(now_).has_value(); }));
  let_pass();
  EXPECT_EQ(port_->count_guests(), 1U) << "it stays";
  EXPECT_EQ(port_->count_machines(), 1U);
  EXPECT_FALSE(links_.back().time_to_next_try(now_));
}

}  // namespace
}  // namespace dtool::host
