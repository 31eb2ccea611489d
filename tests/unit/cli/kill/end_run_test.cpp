// SPDX-License-Identifier: MIT
// A run is ended on all its hosts, and what became of each host is told.
#include "cli/kill/end_run.h"

#include <gtest/gtest.h>

#include "cli/console.h"
#include "killfiles/killfile.h"
#include "ssh/wire/run.h"
#include "ssh/wire/tree.h"
#include "tests/unit/fake_remote.h"
#include "tests/unit/syntax.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::cli {
namespace {

using ssh::Failure;
using tests::answered;
using tests::FakeRemote;

killfiles::Killfile run_on(std::size_t machines) {
  killfiles::Killfile killfile;
  killfile.run_id = "x_1";
  for (std::size_t i = 0; i < machines; ++i) {
    const int id = static_cast<int>(i);
    killfile.machines.push_back({id, "h" + std::to_string(i), "session" + std::to_string(i),
                                 killfiles::state_folder("x_1", id), "/log", ""});
  }
  return killfile;
}

host::KillReply killed(int ended, int forced, const std::vector<std::string>& left = {}) {
  host::KillReply reply;
  reply.ended = ended;
  reply.forced = forced;
  reply.left = left;
  return reply;
}

std::string kill_answer(int ended, int forced, const std::vector<std::string>& left = {}) {
  return host::to_frame(killed(ended, forced, left));
}

KillReport end(FakeRemote& remote) {
  Console console;
  return end_run(console, remote, run_on(remote.names.size()), std::chrono::seconds(1));
}

TEST(EndRun, CountsOverAllHosts) {
  FakeRemote remote("h[1-3]");
  remote.answers[0] = answered(kill_answer(3, 0));
  remote.answers[1] = answered(kill_answer(4, 2));
  remote.answers[2] = answered(kill_answer(0, 0));
  const KillReport report = end(remote);
  EXPECT_EQ(report.ended, 7);
  EXPECT_EQ(report.forced, 2);
  EXPECT_TRUE(report.none_left);
  for (const auto& result : report.results) EXPECT_TRUE(result.ok());
}

TEST(EndRun, ProcessesThatAreLeftAreNamedAndNobodySaysNoneIs) {
  FakeRemote remote("h[1-2]");
  remote.answers[0] = answered(kill_answer(1, 1, {"77 python train.py", "78 sh"}));
  remote.answers[1] = answered(kill_answer(1, 0));
  const KillReport report = end(remote);
  EXPECT_FALSE(report.none_left);
  EXPECT_EQ(report.ended, 2);
  EXPECT_EQ(report.results[0].error,
            "2 processes are still there\n      77 python train.py\n      78 sh");
  EXPECT_TRUE(report.results[1].ok());
}

TEST(EndRun, AnAnswerThatCannotBeReadIsNotTakenForNone) {
  const std::string whole = kill_answer(0, 0);
  for (const std::string& out :
       {std::string(), std::string("ended=0\n"), whole.substr(0, whole.size() - 1)}) {
    FakeRemote remote("h[1-2]");
    remote.answers[0] = answered(out, 0, "what?");
    remote.answers[1] = answered(kill_answer(0, 0));
    const KillReport report = end(remote);
    EXPECT_FALSE(report.none_left) << out;
    EXPECT_FALSE(report.results[0].ok());
    EXPECT_NE(report.results[0].error.find("what?"), std::string::npos);
  }
}

TEST(EndRun, NumbersThatCannotBeAreNotTakenForNone) {
  constexpr int kMost = 1 << 24;
  for (const host::KillReply& bad :
       {killed(-1, 0), killed(0, -1), killed(kMost + 1, 0), killed(0, kMost + 1)}) {
    FakeRemote remote("h1");
    remote.answers[0] = answered(host::to_frame(bad));
    EXPECT_FALSE(end(remote).none_left) << bad.ended << " " << bad.forced;
  }
  FakeRemote remote("h1");
  remote.answers[0] = answered(host::to_frame(killed(kMost, kMost)));
  EXPECT_TRUE(end(remote).none_left);
}

TEST(EndRun, AHostThatCannotLookSaysWhy) {
  FakeRemote remote("h1");
  remote.answers[0] = answered(host::to_frame(host::Fault{"its processes cannot be seen"}), 2);
  const KillReport report = end(remote);
  EXPECT_FALSE(report.none_left);
  EXPECT_EQ(report.results[0].error, "its processes cannot be seen");
}

TEST(EndRun, AHostThatCannotBeReachedKeepsItsFailure) {
  FakeRemote remote("h[1-2]");
  remote.answers[0] = answered(kill_answer(5, 0));
  remote.answers[1] = tests::failed(Failure::connect_timed_out, "no answer");
  const KillReport report = end(remote);
  EXPECT_FALSE(report.none_left);
  EXPECT_EQ(report.ended, 5);
  EXPECT_EQ(report.results[1].failure, Failure::connect_timed_out);
}

TEST(EndRun, AHostOnWhichNothingWasStartedNeedsNoProof) {
  FakeRemote remote("h[1-2]");
  remote.answers[0] = answered(kill_answer(5, 0));
  remote.answers[1] = tests::failed(Failure::unreachable, "no route");
  killfiles::Killfile killfile = run_on(2);
  killfile.machines[1].session.clear();
  killfile.machines[1].state_folder.clear();
  Console console;
  const KillReport report = end_run(console, remote, killfile, std::chrono::seconds(1));
  EXPECT_TRUE(report.none_left);
  EXPECT_EQ(report.results.size(), 1U);
}

TEST(EndRun, AnInterruptLeavesHostsThatAreNotTakenForDone) {
  FakeRemote remote("h[1-2]");
  remote.answers[0] = remote.answers[1] = answered(kill_answer(1, 0));
  remote.interrupt_before = 1;
  testing::internal::CaptureStderr();
  const KillReport report = end(remote);
  testing::internal::GetCapturedStderr();
  EXPECT_FALSE(report.none_left);
  EXPECT_EQ(report.results[1].failure, Failure::not_started);
}

const std::string kHere =
    "0123456789abcdef0123456789abcdef login1 "
    "5f0c91aa-1111-4222-8333-444455556666 4026531836";
const std::string kRebooted =
    "0123456789abcdef0123456789abcdef login1 "
    "00000000-1111-4222-8333-444455556666 4026531836";
const std::string kElsewhere =
    "0123456789abcdef0123456789abcdef login2 "
    "00000000-1111-4222-8333-444455556666 4026531836";

/// Of a run on login1, where this was answered.
KillReport end_on_login1(host::KillReply reply, const std::filesystem::path& file = {}) {
  FakeRemote remote("h1");
  reply.ended = 1;
  remote.answers[0] = answered(host::to_frame(reply));
  killfiles::Killfile killfile = run_on(1);
  killfile.machines[0].identity = {"0123456789abcdef0123456789abcdef", "login1",
                                   "5f0c91aa-1111-4222-8333-444455556666", "4026531836", ""};
  Console console;
  return end_run(console, remote, killfile, std::chrono::seconds(1), file);
}

host::KillReply from_host(const std::string& identity) {
  host::KillReply reply;
  reply.host = identity;
  return reply;
}

TEST(EndRun, AnotherHostsAnswerIsNotTakenForNone) {
  for (const std::string& identity : {kElsewhere, std::string(), std::string("x")}) {
    const KillReport report = end_on_login1(from_host(identity));
    EXPECT_FALSE(report.none_left) << identity;
    EXPECT_EQ(report.ended, 1);
    EXPECT_EQ(report.results[0].failure, Failure::unproven);
    EXPECT_NE(report.results[0].hint.find("login1"), std::string::npos);
  }
  EXPECT_TRUE(end_on_login1(from_host(kHere)).none_left);
  EXPECT_TRUE(end_on_login1(from_host(kRebooted)).none_left);
  host::KillReply vouched = from_host(kElsewhere);
  vouched.vouched_for = "by Slurm";
  EXPECT_TRUE(end_on_login1(vouched).none_left);
}

host::KillReply without_folder(const std::string& identity) {
  host::KillReply reply = from_host(identity);
  reply.no_folder = "/root/.dtool/runs/x_1";
  return reply;
}

TEST(EndRun, AMissingFolderIsDoubtedUnlessTheHostWasRebooted) {
  const KillReport report = end_on_login1(without_folder(kHere));
  EXPECT_FALSE(report.none_left);
  EXPECT_NE(report.results[0].error.find("/root/.dtool/runs/x_1"), std::string::npos);
  EXPECT_TRUE(end_on_login1(without_folder(kRebooted)).none_left);
  host::KillReply unmarked = from_host(kHere);
  unmarked.unmarked = "/x";
  EXPECT_FALSE(end_on_login1(unmarked).none_left);
  host::KillReply locked = from_host(kHere);
  locked.locked = "/x/machine0";
  EXPECT_FALSE(end_on_login1(locked).none_left);
  FakeRemote remote("h1");
  remote.answers[0] = answered(host::to_frame(without_folder("")));
  EXPECT_FALSE(end(remote).none_left) << "nor where nothing of the host was recorded";
}

TEST(EndRun, WhatAnotherKillHasProvenIsNotDoubted) {
  const tests::TemporaryFolder folder;
  const host::KillReply missing = without_folder(kHere);
  killfiles::Killfile killfile = run_on(1);
  killfile.created = "2026-11-22T10:00:00Z";
  const auto file = killfiles::write(folder.path(), killfile);
  EXPECT_FALSE(end_on_login1(missing, file).none_left);
  killfile.ended = "2026-11-22T10:10:00Z";
  killfiles::write(folder.path(), killfile);
  EXPECT_TRUE(end_on_login1(missing, file).none_left);
  std::filesystem::remove(file);
  EXPECT_TRUE(end_on_login1(missing, file).none_left);
}

TEST(EndRun, EveryMachineIsAskedForItsOwnSession) {
  FakeRemote remote("h[1-2]");
  end(remote);
  const auto request = tests::request_of<host::KillRequest>(remote.input_of(1));
  EXPECT_EQ(request.sessions, std::vector<std::string>{"session1"});
  EXPECT_EQ(request.state_folders, std::vector<std::string>{killfiles::state_folder("x_1", 1)});
}

TEST(EndRun, AHostMayTakeTheWholeGraceAndStillAnswer) {
  FakeRemote remote("h1");
  Console console;
  end_run(console, remote, run_on(1), std::chrono::hours(1));
  EXPECT_GT(remote.asked_options.at(0).timeout, std::chrono::hours(1) + std::chrono::seconds(60));
  EXPECT_EQ(tests::request_of<host::KillRequest>(remote.input_of(0)).grace_ms, 3'600'000);
}

TEST(EndRun, OnlyAReadableAnswerWithNothingLeftIsAProof) {
  EXPECT_TRUE(is_proven_ended(answered(kill_answer(3, 0))));
  EXPECT_FALSE(is_proven_ended(answered(kill_answer(3, 0, {"7 sh"}))));
  EXPECT_FALSE(is_proven_ended(answered("what?")));
  EXPECT_FALSE(is_proven_ended(tests::failed(Failure::connection_lost, "")));
}

/// So that another kill at that moment knows why the run's folder is gone.
TEST(ForgetRun, TheKillfileSaysThatTheRunIsOverWhileItsFoldersGo) {
  struct Reading : FakeRemote {
    using FakeRemote::FakeRemote;
    std::vector<ssh::HostResult> run(std::vector<ssh::Task> tasks, ssh::Events& events,
                                     const ssh::RunOptions& options) override {
      ended = killfiles::read(file).ended;
      return FakeRemote::run(std::move(tasks), events, options);
    }
    std::filesystem::path file;
    std::string ended;
  };
  const tests::TemporaryFolder folder;
  const killfiles::Killfile killfile = run_on(1);
  Reading remote("h1");
  remote.file = killfiles::write(folder.path(), killfile);
  Console console;
  forget_run(console, remote, killfile, remote.file);
  EXPECT_NE(remote.ended, "");
}

TEST(ForgetRun, RemovesTheRunsFolderAloneAndNothingWithoutAnId) {
  const tests::TemporaryFolder folder;
  killfiles::Killfile killfile = run_on(2);
  const auto file = killfiles::write(folder.path(), killfile);
  FakeRemote remote("h[1-2]");
  Console console;
  forget_run(console, remote, killfile, file);
  const auto request = tests::request_of<host::RemoveRequest>(remote.input_of(0));
  EXPECT_EQ(request.run_id, "x_1");
  EXPECT_TRUE(request.with_state);
  EXPECT_FALSE(std::filesystem::exists(file));
  killfile.run_id = "";
  forget_run(console, remote, killfile, file);
  EXPECT_EQ(remote.rounds.size(), 1U);
}

}  // namespace
}  // namespace dtool::cli
