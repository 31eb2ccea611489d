// Causes: their wording, their form on the wire, and how machines agree on one over real sockets.
#include "trainer/launch/cause.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <thread>

#include "tests/unit/temporary_folder.h"
#include "trainer/launch/cause_exchange.h"
#include "trainer/launch/front_door.h"
#include "trainer/launch/line_socket.h"
#include "trainer/launch/out_of_memory.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

int exit_status(int code) {
  return code << 8;
}

std::string text_of(const WorkerEnd& end) {
  return cause_of(end, 1, "red02").text;
}

TEST(Cause, SaysWhichSignalEndedAWorker) {
  EXPECT_EQ(text_of({3, SIGSEGV, "", "", "a warning of an hour ago"}),
            "rank 3 on machine 1 (red02) was killed by signal 11 (Segmentation fault)");
  EXPECT_EQ(text_of({3, SIGABRT, "", "", "what():  boom"}),
            "rank 3 on machine 1 (red02) was killed by signal 6 (Aborted): what():  boom");
}

TEST(Cause, NamesTheOutOfMemoryKillerOnlyWhereItKilled) {
  EXPECT_EQ(
      text_of({3, SIGKILL, "", "", "", true}),
      "rank 3 on machine 1 (red02) was killed by signal 9 (Killed): the kernel was out of memory");
  EXPECT_EQ(text_of({3, SIGSEGV, "", "", "", true}),
            "rank 3 on machine 1 (red02) was killed by signal 11 (Segmentation fault)");
}

TEST(Cause, PrefersTheWordsOfAWorkerToItsStandardError) {
  EXPECT_EQ(text_of({3, exit_status(1), "no space left", "", "something else"}),
            "rank 3 on machine 1 (red02) failed with exit code 1: no space left");
  EXPECT_EQ(text_of({3, exit_status(7), "", "", "out of luck"}),
            "rank 3 on machine 1 (red02) failed with exit code 7: out of luck");
}

TEST(Cause, AWorkerThatNoticedAnothersEndIsOnlyASuspicion) {
  const Cause noticed =
      cause_of({3, exit_status(kOthersFailed), "lost rank 0", "", ""}, 1, "red02");
  EXPECT_EQ(noticed.certainty, Cause::Certainty::suspected);
  EXPECT_EQ(noticed.text, "lost rank 0");
  // The same code without words is a library's.
  EXPECT_EQ(cause_of({3, exit_status(kOthersFailed), "", "", ""}, 1, "red02").certainty,
            Cause::Certainty::certain);
}

TEST(Cause, ComesThroughTheWireAsItWas) {
  Cause cause;
  cause.exit_code = kMistake;
  cause.text = "rank 3 on machine 1 (red02): a \"text\": with  blanks";
  cause.hint = "mend it";
  EXPECT_EQ(read_cause(write_cause(cause)), cause);
  cause.workers_end = Cause::WorkersEnd::with_a_checkpoint;
  EXPECT_EQ(read_cause(write_cause(cause)), cause);
  cause.text = "two\nlines\tand a tab";
  EXPECT_EQ(read_cause(write_cause(cause))->text, "two lines and a tab");
  EXPECT_FALSE(read_cause("alive"));
  EXPECT_FALSE(read_cause("cause\tcertain\t1"));
}

TEST(Cause, HasItsHintOnALineOfItsOwnOnlyWhereNobodyElsePrintsIt) {
  Cause cause;
  cause.text = "no file";
  EXPECT_EQ(last_line(cause, 3), "dtool-trainer: no file\n");
  cause.hint = "make one";
  EXPECT_EQ(last_line(cause, 1), "dtool-trainer: no file\nhint: make one\n");
  EXPECT_EQ(last_line(cause, 3), "dtool-trainer: no file (hint: make one)\n");
}

TEST(Cause, NamesTheFirstEightMissingMachines) {
  EXPECT_EQ(name_missing_ranks({2, 3, 5}, 2), "machine 1 (rank 2, 3), machine 2 (rank 5)");
  std::vector<int> ranks;
  for (int rank = 1; rank < 1000; ++rank) ranks.push_back(rank);
  EXPECT_TRUE(name_missing_ranks(ranks, 1).ends_with("machine 8 (rank 8), and 991 machines more"));
}

/// Machine 0 and others on the loopback address, each worked by hand.
class Exchange : public testing::Test {
 protected:
  Exchange() : port_(ReservedPort::For::this_machine) {}

  MachineInRun machine(int number, int machines) const {
    MachineInRun self;
    self.machine = number;
    self.machines = machines;
    self.host = "red0" + std::to_string(number + 1);
    self.listener = {"127.0.0.1", port_.number()};
    return self;
  }
  /// The machine's connection waits for its welcome, so machine 0 has to work meanwhile.
  static std::unique_ptr<CauseExchange> join(CauseExchange& server, const MachineInRun& self) {
    auto client = std::async(std::launch::async, [&] { return make_cause_client(self); });
    work_until({&server},
               [&] { return client.wait_for(milliseconds(0)) == std::future_status::ready; });
    return client.get();
  }
  static void work_until(const std::vector<CauseExchange*>& all,
                         const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(60);
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      for (CauseExchange* each : all) each->work();
      std::this_thread::sleep_for(milliseconds(1));
    }
    ASSERT_TRUE(done());
  }
  static void work_to_the_end(const std::vector<CauseExchange*>& all) {
    work_until(all, [&] {
      return std::all_of(all.begin(), all.end(), [](auto* each) { return each->may_leave(); });
    });
  }
  static Cause cause(const std::string& text, Cause::Certainty certainty) {
    Cause made;
    made.text = text;
    made.certainty = certainty;
    return made;
  }

  ReservedPort port_;
};

TEST_F(Exchange, EndsWellOnceAllMachinesHaveFinished) {
  const auto zero = make_cause_server(machine(0, 3));
  const auto one = join(*zero, machine(1, 3));
  const auto two = join(*zero, machine(2, 3));
  EXPECT_EQ(one->store_port(), zero->store_port());
  one->finish();
  zero->finish();
  zero->work();
  EXPECT_FALSE(zero->outcome());
  two->finish();
  work_to_the_end({zero.get(), one.get(), two.get()});
  for (const auto* each : {zero.get(), one.get(), two.get()}) {
    EXPECT_FALSE(each->outcome()->cause);
  }
}

TEST_F(Exchange, ACertainCauseWinsOverAnEarlierSuspicion) {
  const auto zero = make_cause_server(machine(0, 3));
  const auto one = join(*zero, machine(1, 3));
  const auto two = join(*zero, machine(2, 3));
  zero->report(cause("lost somebody", Cause::Certainty::suspected));
  one->report(cause("rank 1 was killed", Cause::Certainty::certain));
  two->report(cause("rank 2 was killed later", Cause::Certainty::certain));
  work_until({one.get(), zero.get()}, [&] { return zero->outcome().has_value(); });
  work_to_the_end({zero.get(), one.get(), two.get()});
  const auto expected = zero->outcome()->cause->text;
  EXPECT_NE(expected, "lost somebody");
  EXPECT_EQ(one->outcome()->cause->text, expected);
  EXPECT_EQ(two->outcome()->cause->text, expected);
}

TEST_F(Exchange, ASuspicionIsBelievedWhenNothingBetterComes) {
  const auto zero = make_cause_server(machine(0, 2));
  const auto one = join(*zero, machine(1, 2));
  one->report(cause("lost somebody", Cause::Certainty::suspected));
  work_to_the_end({zero.get(), one.get()});
  EXPECT_EQ(one->outcome()->cause->text, "lost somebody");
}

TEST_F(Exchange, AMachineThatHangsUpWithoutAWordIsLost) {
  const auto zero = make_cause_server(machine(0, 3));
  auto one = join(*zero, machine(1, 3));
  const auto two = join(*zero, machine(2, 3));
  one.reset();
  work_to_the_end({zero.get(), two.get()});
  EXPECT_EQ(two->outcome()->cause->text,
            "machine 1 (red02) was lost: its dtool-trainer ended without a word");
}

TEST_F(Exchange, AMachineThatFallsSilentIsLost) {
  MachineInRun first = machine(0, 3);
  first.silence = seconds(2);
  const auto zero = make_cause_server(first);
  const auto one = join(*zero, machine(1, 3));
  const auto two = join(*zero, machine(2, 3));
  work_to_the_end({zero.get(), two.get()});
  EXPECT_EQ(two->outcome()->cause->text, "machine 1 (red02) was lost: no sign of life for 2 s");
}

TEST_F(Exchange, TheOthersNameMachine0WhenItIsLost) {
  auto zero = make_cause_server(machine(0, 2));
  const auto one = join(*zero, machine(1, 2));
  zero.reset();
  work_to_the_end({one.get()});
  EXPECT_EQ(one->outcome()->cause->text,
            "machine 0 (red01) was lost: its dtool-trainer ended without a word");
}

TEST_F(Exchange, AMachineThatComesLateIsToldToo) {
  const auto zero = make_cause_server(machine(0, 2));
  zero->report(cause("rank 0 was killed", Cause::Certainty::certain));
  const auto one = join(*zero, machine(1, 2));
  work_to_the_end({zero.get(), one.get()});
  EXPECT_EQ(one->outcome()->cause->text, "rank 0 was killed");
}

TEST_F(Exchange, StrangersAreIgnored) {
  const auto zero = make_cause_server(machine(0, 2));
  LineSocket stranger(connect_within({"127.0.0.1", port_.number()}, seconds(10)));
  stranger.send("GET / HTTP/1.1");
  stranger.send("cause\tcertain\t1\ta lie\t");
  stranger.send("hello 1 0 2 1 impostor");
  stranger.send("hello one two");
  const auto one = join(*zero, machine(1, 2));
  zero->work();
  EXPECT_FALSE(zero->outcome());
}

TEST_F(Exchange, WhatIsNotMachine0IsNoHangingMatter) {
  const int listener = listen_at({"127.0.0.1", port_.number()}).front();
  auto client = std::async(std::launch::async, [&] { return make_cause_client(machine(1, 2)); });
  int connected = -1;
  while (connected < 0) connected = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
  {
    LineSocket other(connected);
    other.send("SSH-2.0-OpenSSH_9.2");
    other.finish_sending();
    EXPECT_EQ(client.wait_for(seconds(60)), std::future_status::ready);
  }
  EXPECT_THROW(client.get(), UsageError);
  close(listener);
}

TEST(OutOfMemory, IsCountedInTheProcessesOwnCgroup) {
  const tests::TemporaryFolder folder;
  const std::filesystem::path& root = folder.path();
  EXPECT_EQ(count_out_of_memory_kills(root), 0);
  folder.write("proc/vmstat", "nr_free_pages 5\noom_kill 7\n");
  EXPECT_EQ(count_out_of_memory_kills(root), 7);
  folder.write("proc/self/cgroup", "4:memory:/a/b\n0::/c\n");
  EXPECT_EQ(count_out_of_memory_kills(root), 7);
  folder.write("sys/fs/cgroup/c/memory.events", "low 0\noom 2\noom_kill 3\n");
  EXPECT_EQ(count_out_of_memory_kills(root), 3);
  folder.write("sys/fs/cgroup/memory/a/b/memory.oom_control", "under_oom 0\noom_kill 4\n");
  EXPECT_EQ(count_out_of_memory_kills(root), 4);
}

}  // namespace
}  // namespace dtool::trainer
