// SPDX-License-Identifier: MIT
// The mark that keeps a run from starting, and the end of its processes.
#include "ssh/host/kill.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/host/versions.h"
#include "tests/unit/own_program.h"
#include "tests/unit/refused_calls.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

namespace fs = std::filesystem;

bool is_alive(pid_t pid) {
  const auto process = find_process(pid);
  return process && !process->is_dead();
}

class Kill : public testing::Test {
 protected:
  ~Kill() override {
    for (const pid_t pid : begun_) {
      if (is_alive(pid)) ::kill(pid, SIGKILL);
    }
  }
  /// Begins a script, without a parent and in a session of its own; it has done `first` when this
  /// returns.
  pid_t begin(const std::string& first, const std::string& then, const std::string& id = {}) {
    const fs::path file = folder.path() / ("begun" + std::to_string(begun_.size()));
    const std::string script = first + "; echo $$ >\"$0.new\"; mv \"$0.new\" \"$0\"; " + then;
    EXPECT_EQ(start_detached({"/bin/bash", "-c", script, file}, folder.path(), Descriptor(), id),
              "");
    for (int i = 0; i < 1000 && !fs::exists(file); ++i) pause(std::chrono::milliseconds(10));
    pid_t pid = 0;
    std::ifstream(file) >> pid;
    EXPECT_GT(pid, 1);
    begun_.push_back(pid);
    return pid;
  }
  /// Notes it as the leader of the run's job.
  void record_leader(pid_t pid) const {
    const fs::path state = folder.path() / "run/machine0";
    fs::create_directories(state);
    std::ofstream(state / "process")
        << pid << " " << find_process(pid).value().start << " " << current_boot() << "\n";
  }

  KillReply kill() {
    KillRequest request;
    request.run_id = run_id;
    request.state_folders = {folder.path() / "run" / "machine0"};
    request.grace_ms = 100;
    return kill_run(request);
  }
  /// A process that bears the run's id, once its script says so, and does not descend from this.
  void start(const std::string& script) const {
    const fs::path ready = folder.path() / "ready";
    fs::remove(ready);
    const std::string whole = script + "; : >\"$0\"; for i in {1..600}; do sleep 0.1; done";
    const ChildResult started =
        run_program({"env", "DTOOL_RUN_ID=" + run_id, "bash", "-c",
                     "bash -c \"$1\" \"$0\" >/dev/null 2>&1 &", ready, whole},
                    std::chrono::seconds(20));
    ASSERT_TRUE(started.ok());
    for (int i = 0; i < 1000 && !fs::exists(ready); ++i) pause(std::chrono::milliseconds(10));
  }

  const tests::TemporaryFolder folder;
  const std::string run_id = "kill_test_" + std::to_string(::getpid());

 private:
  std::vector<pid_t> begun_;
};

TEST_F(Kill, LeavesAMarkWhereTheRunMayStart) {
  fs::create_directory(folder.path() / "run");
  const KillReply reply = kill();
  EXPECT_TRUE(fs::exists(folder.path() / "run" / "machine0" / "killed"));
  EXPECT_EQ(reply.no_folder + reply.unmarked + reply.locked, "");
  EXPECT_EQ(reply.ended, 0);
}

TEST_F(Kill, SaysThatTheRunsFolderIsMissingAndMakesNone) {
  EXPECT_EQ(kill().no_folder, folder.path() / "run");
  EXPECT_FALSE(fs::exists(folder.path() / "run"));
}

TEST_F(Kill, SaysThatItsMarkCannotBeWritten) {
  folder.write("run/machine0", "a file stands there");
  const KillReply reply = kill();
  EXPECT_EQ(reply.unmarked, folder.path() / "run" / "machine0");
  EXPECT_EQ(reply.locked, "");
}

TEST_F(Kill, HandsOnWhatTheSchedulersEndOfTheJobAnswers) {
  folder.write("run/machine0/end",
               "answer cancelled \"job of $run_id\"\nanswer job_left nodes\n"
               "answer vouched_for slurm\nanswer other words\n");
  const KillReply reply = kill();
  EXPECT_EQ(reply.cancelled, "job of " + run_id);
  EXPECT_EQ(reply.job_left, "nodes");
  EXPECT_EQ(reply.vouched_for, "slurm");
}

TEST_F(Kill, SaysWhenTheSchedulersEndOfTheJobFails) {
  folder.write("run/machine0/end", "kill -9 $$\n");
  const KillReply reply = kill();
  EXPECT_EQ(reply.cancelled + reply.vouched_for, "");
}

TEST_F(Kill, SaysThatTheSchedulersEndCannotBeRun) {
  folder.write("run/machine0/end", "answer cancelled x\n");
  {
    const tests::TemporaryVariable path("PATH", folder.path());
    EXPECT_EQ(kill().job_left, "bash is not installed");
  }
  EXPECT_EXIT(
      {
        tests::refuse_processes(EAGAIN);
        std::fputs(kill().job_left.c_str(), stderr);
        ::_exit(0);
      },
      testing::ExitedWithCode(0), "^no process can be made: Resource temporarily unavailable$");
}

TEST_F(Kill, EndsByTermWhatAnswersItAndByKillWhatDoesNot) {
  for (const bool answers : {true, false}) {
    start(answers ? ":" : "trap : TERM");
    const KillReply reply = kill();
    EXPECT_GE(reply.ended, 1);
    EXPECT_EQ(reply.forced > 0, !answers) << reply.forced;
    EXPECT_TRUE(reply.left.empty());
  }
}

TEST_F(Kill, ItsMarkSaysHowLongItMayTake) {
  const fs::path state = folder.path() / "run/machine0";
  fs::create_directories(state);
  for (const auto& [grace, seconds] : {std::pair{100, "90"}, {5000, "95"}, {5999, "95"}}) {
    KillRequest request{run_id, {}, {state}, grace};
    kill_run(request);
    EXPECT_EQ(read_line(state / "killed"), seconds);
  }
}

TEST_F(Kill, TheProgramsEndBeforeThoseThatHoldTheirTerminal) {
  const fs::path said = folder.path() / "said";
  const auto says = [&](const std::string& word, const std::string& slowly = "") {
    return "trap '" + slowly + "echo " + word + " >>" + said.string() + "; exit 0' TERM; ";
  };
  ASSERT_EQ(::mkfifo((folder.path() / "never").c_str(), 0600), 0);
  for (const std::string holder : {"tmux", "screen"}) {
    fs::remove(said);
    folder.write("child", says("program", "sleep 0.2; ") + ": >child_ready; sleep 54 & wait\n");
    folder.write("leader", says("leader") + "bash child & echo $$ >leader_pid; read <>never\n");
    fs::remove(folder.path() / "child_ready");
    begin(says("holder") + "setsid bash leader & until [ -e child_ready ]; do sleep 0.01; done",
          "read <>never", run_id);
    pid_t leader = 0;
    std::ifstream(folder.path() / "leader_pid") >> leader;
    record_leader(leader);
    folder.write("run/machine0/holder", holder + "\n");
    // It ends as soon as nothing is left.
    const KillReply reply = kill_run({run_id, {}, {folder.path() / "run/machine0"}, 600'000});
    EXPECT_TRUE(reply.left.empty());
    std::istringstream lines(folder.read("said"));
    std::vector<std::string> words;
    for (std::string line; std::getline(lines, line);) words.push_back(line);
    ASSERT_EQ(words.size(), 3U) << folder.read("said");
    EXPECT_EQ(words[0], "program") << holder;
    EXPECT_EQ(std::set(words.begin(), words.end()),
              (std::set<std::string>{"holder", "leader", "program"}));
  }
}

TEST_F(Kill, ALeaderThatDoesNotAnswerIsForced) {
  const tests::TemporaryVariable of_no_run("DTOOL_RUN_ID", "");
  const pid_t leader = begin("trap '' TERM", "exec sleep 55");
  record_leader(leader);
  const KillReply reply = kill();
  EXPECT_EQ(reply.ended, 1);
  EXPECT_EQ(reply.forced, 1);
  EXPECT_FALSE(is_alive(leader));
}

TEST_F(Kill, RootEndsAProcessOfTheRunThatIsAnotherUsers) {
  if (::geteuid() != 0 || !is_program("setpriv")) GTEST_SKIP() << "needs root and setpriv";
  const tests::TemporaryVariable of_no_run("DTOOL_RUN_ID", "");
  const pid_t leader = begin(":", "exec setpriv --reuid=65534 sleep 56");
  for (int i = 0; i < 1000 && user_of(leader) != 65534; ++i) pause(std::chrono::milliseconds(10));
  if (user_of(leader) != 65534) GTEST_SKIP() << "there is no such user";
  record_leader(leader);
  const KillReply reply = kill();
  EXPECT_TRUE(reply.left.empty());
  EXPECT_EQ(reply.ended, 1);
  EXPECT_FALSE(is_alive(leader));
}

constexpr int kNoSuchUser = 98;

TEST_F(Kill, AUserIsToldOfAProcessThatIsAnothers) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  const tests::TemporaryVariable of_no_run("DTOOL_RUN_ID", "");
  const pid_t leader = begin(":", "exec sleep 57");
  record_leader(leader);
  ::chmod(folder.path().c_str(), 0777);
  ::chmod((folder.path() / "run/machine0").c_str(), 0777);
  EXPECT_EXIT(
      {
        if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(kNoSuchUser);
        ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
        const pid_t own = begin(":", "exec sleep 58", run_id);
        const KillReply reply = kill();
        const bool is_told = reply.left.size() == 1 && reply.ended == 1 && !is_alive(own);
        if (!is_told)
          std::fprintf(stderr, "%d left, %d ended; ", int(reply.left.size()), int(reply.ended));
        for (const std::string& each : reply.left) std::fputs(each.c_str(), stderr);
        ::_exit(is_told ? 0 : 1);
      },
      [](int status) {
        return WIFEXITED(status) &&
               (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kNoSuchUser);
      },
      "(^[0-9]+ sleep 57 .another user's, which only that user or root can end.$|^$)");
  EXPECT_TRUE(is_alive(leader));
}

/// Called by a process of the run: what is left in the words of a kill, and of a session that ends
/// the rest of its run.
int kill_from_inside() {
  const char* run_id = std::getenv("DTOOL_RUN_ID");
  for (const std::string& each : kill_run({run_id, {"unit"}, {}, 100}).left)
    std::puts(each.c_str());
  for (const std::string& each :
       end_processes(run_id, std::chrono::milliseconds(100), {::getppid()}).left)
    std::puts(each.c_str());
  return 0;
}

const tests::OwnProgram kKillFromInside("kill_from_inside", kill_from_inside);

TEST_F(Kill, SaysThatItWasCalledByTheRunItself) {
  const ChildResult told =
      run_program({"env", "DTOOL_RUN_ID=" + run_id, "bash", "-c", "\"$0\" kill_from_inside; exit",
                   own_path(), std::string(300, 'x')},
                  std::chrono::seconds(60));
  EXPECT_EQ(told.exit_code, 0) << told.err;
  const std::string command = told.out.substr(0, told.out.find(" (it has called"));
  EXPECT_EQ(told.out, command +
                          " (it has called this very dtool kill, which is part of the run: call it "
                          "from elsewhere)\n");
  const std::size_t blank = command.find(' ');
  EXPECT_EQ(command.find_first_not_of("0123456789"), blank);
  EXPECT_TRUE(command.substr(blank).starts_with(" bash -c ")) << command;
  EXPECT_EQ(command.size() - blank - 1, 200U);
}

TEST_F(Kill, ASessionEndsTheRestOfItsRun) {
  const pid_t one = begin(":", "exec sleep 59", run_id);
  const pid_t other = begin(":", "exec sleep 60", run_id);
  const KillReply reply = end_processes(run_id, std::chrono::milliseconds(100), {other});
  EXPECT_EQ(reply.ended, 1);
  EXPECT_TRUE(reply.left.empty());
  EXPECT_FALSE(is_alive(one));
  EXPECT_TRUE(is_alive(other));
  end_processes(run_id, std::chrono::milliseconds(100), {});
  EXPECT_FALSE(is_alive(other));
}

TEST_F(Kill, LooksAgainBeforeItSaysThatItCannot) {
  EXPECT_EXIT(
      {
        tests::refuse_call(SYS_getdents64, EMFILE);
        const auto began = std::chrono::steady_clock::now();
        try {
          kill();
        } catch (const std::runtime_error&) {
          // Three looks, a tenth of a second apart.
          const auto passed = std::chrono::steady_clock::now() - began;
          ::_exit(passed >= std::chrono::milliseconds(200) ? 0 : 2);
        }
        ::_exit(1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(Kill, EndsTheRunBeforeItSaysThatTheScreensCannotBeAskedFor) {
  const pid_t program = begin(":", "exec sleep 61", run_id);
  EXPECT_EXIT(
      {
        tests::refuse_processes(EAGAIN);
        try {
          kill_run({run_id, {"dtool_unit"}, {}, 100});
        } catch (const std::runtime_error& error) {
          std::fputs(error.what(), stderr);
          ::_exit(0);
        }
        ::_exit(1);
      },
      testing::ExitedWithCode(0),
      "^the host's processes cannot be looked at: no process can be made: Resource temp");
  EXPECT_FALSE(is_alive(program));
}

TEST(Strikes, EndWhereNothingLivesAndEverythingWasMet) {
  Strikes strikes;
  EXPECT_FALSE(strikes.are_due(false, false));
  EXPECT_TRUE(strikes.are_due(true, false));
  strikes.add(true);
  EXPECT_FALSE(strikes.are_due(false, false));
}

TEST(Strikes, ThreeCalmLooksInARowEndThemWhereTheRunWasRestless) {
  Strikes strikes;
  for (const bool is_calm : {true, true, false, true, true}) {
    strikes.add(is_calm);
    EXPECT_TRUE(strikes.are_due(false, true));
    EXPECT_FALSE(strikes.have_calmed());
  }
  strikes.add(true);
  EXPECT_FALSE(strikes.are_due(false, true));
  EXPECT_TRUE(strikes.have_calmed());
}

TEST(Strikes, AreTenAtMost) {
  Strikes strikes;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(strikes.are_due(true, false)) << i;
    EXPECT_TRUE(strikes.are_due(true, true)) << i;
    strikes.add(false);
  }
  EXPECT_FALSE(strikes.are_due(true, true));
  EXPECT_FALSE(strikes.have_calmed());
}

/// A program `screen` that shows what stands in `listing`, notes how it was called in `calls`, and
/// ends a session as it is told.
struct KillOfScreens : Kill {
  void SetUp() override {
    const fs::path screen = folder.write(
        "bin/screen", "#!/bin/sh\ncd '" + folder.path().string() +
                          "'\necho \"$*\" >>calls\n[ \"$1\" != -ls ] || { cat listing; exit 1; }\n"
                          "[ \"$1\" != -S ] || kill -KILL \"${2%%.*}\"\n");
    ASSERT_EQ(::chmod(screen.c_str(), 0755), 0);
    folder.write("listing", "");
  }
  bool was_called(const std::string& with) const {
    return ("\n" + folder.read("calls")).find("\n" + with + "\n") != std::string::npos;
  }

  const tests::TemporaryVariable of_no_run{"DTOOL_RUN_ID", ""};
  const tests::TemporaryVariable path{"PATH",
                                      (folder.path() / "bin").string() + ":" + std::getenv("PATH")};
};

TEST_F(KillOfScreens, TheyAreToldToQuitBeforeTheyAreForced) {
  const pid_t screen = begin("trap '' TERM", "exec sleep 62");
  const pid_t other = begin(":", "exec sleep 63");
  const std::string name = std::to_string(screen) + ".unit";
  folder.write("listing", "There are screens on:\n\t" + name + "\t(Detached)\n\t" +
                              std::to_string(other) + ".unit2\t(Detached)\n\tx.unit\t(Dead)\n" +
                              "3 Sockets in /run/screen/S-me.\n");
  const KillReply reply = kill_run({"", {"unit"}, {}, 100});
  EXPECT_EQ(reply.ended, 1);
  EXPECT_TRUE(reply.left.empty());
  EXPECT_FALSE(is_alive(screen));
  EXPECT_TRUE(is_alive(other));
  EXPECT_TRUE(was_called("-ls unit")) << folder.read("calls");
  EXPECT_TRUE(was_called("-S " + name + " -X quit")) << folder.read("calls");
  EXPECT_TRUE(was_called("-wipe")) << folder.read("calls");
}

TEST_F(KillOfScreens, OneFromWhichTheKillIsCalledIsNotToldToQuit) {
  begin(":", "exec sleep 65", run_id);
  const ChildResult told = run_program(
      {"env", "DTOOL_RUN_ID=" + run_id, "bash", "-c",
       "echo \" $$.unit (Attached)\" >listing; \"$0\" kill_from_inside; exit", own_path()},
      std::chrono::seconds(60), folder.path());
  EXPECT_EQ(told.exit_code, 0) << told.err;
  EXPECT_NE(told.out.find("it has called this very dtool kill"), told.out.npos) << told.out;
  EXPECT_EQ(folder.read("calls").find("quit"), std::string::npos) << folder.read("calls");
  EXPECT_TRUE(was_called("-wipe")) << folder.read("calls");
}

TEST_F(KillOfScreens, WhereThereIsNoneNothingIsSaidToScreen) {
  EXPECT_EQ(kill_run({"", {"unit"}, {}, 100}).ended, 0);
  EXPECT_TRUE(was_called("-ls unit"));
  EXPECT_FALSE(was_called("-wipe"));
}

TEST_F(KillOfScreens, AProgramWithoutASessionHasNothingToDoWithThem) {
  begin(":", "exec sleep 64", run_id);
  EXPECT_EQ(kill_run({run_id, {}, {}, 100}).ended, 1);
  EXPECT_EQ(folder.read("calls"), "");
}

/// The leader of a session, which has no run's id, and what it has begun.
struct KillOfASession : Kill {
  void SetUp() override {
    fs::create_directories(state);
    const fs::path pids = folder.path() / "pids";
    const std::string script = "sleep 51 & echo $$ $! >" + pids.string() + ".new; mv " +
                               pids.string() + ".new " + pids.string() + "; wait";
    ASSERT_EQ(start_detached({"/bin/sh", "-c", script}, folder.path(), Descriptor(), ""), "");
    for (int i = 0; i < 1000 && !fs::exists(pids); ++i) pause(std::chrono::milliseconds(10));
    std::ifstream(pids) >> leader >> child;
    const std::vector<Process> processes = read_processes();
    begun = std::ranges::find(processes, leader, &Process::pid)->start;
  }
  void TearDown() override {
    for (const pid_t pid : {leader, child}) {
      if (runs(pid)) ::kill(pid, SIGKILL);
    }
  }
  static bool runs(pid_t pid) {
    const std::vector<Process> processes = read_processes();
    const auto found = std::ranges::find(processes, pid, &Process::pid);
    return found != processes.end() && !found->is_dead();
  }
  void record(std::uint64_t start, const std::string& boot) const {
    std::ofstream(state / "process") << leader << " " << start << " " << boot << "\n";
  }

  const tests::TemporaryVariable of_no_run{"DTOOL_RUN_ID", ""};
  const fs::path state = folder.path() / "run/machine0";
  pid_t leader = 0;
  pid_t child = 0;
  std::uint64_t begun = 0;
};

TEST_F(KillOfASession, EndsTheLeaderAndWhatItHasBegun) {
  record(begun, std::string(current_boot()));
  const KillReply reply = kill();
  EXPECT_EQ(reply.ended, 2);
  EXPECT_EQ(reply.forced, 0);
  EXPECT_FALSE(runs(leader));
  EXPECT_FALSE(runs(child));
}

TEST_F(KillOfASession, LeavesAnotherProcessWithThatNumberAlone) {
  record(begun + 1, std::string(current_boot()));
  EXPECT_EQ(kill().ended, 0);
  record(begun, "another-boot");
  EXPECT_EQ(kill().ended, 0);
  EXPECT_TRUE(runs(leader));
  EXPECT_TRUE(runs(child));
}

TEST_F(KillOfASession, NamesWhatWritesIntoTheRunsLogsOrFolderWithoutItsId) {
  record(begun, std::string(current_boot()));
  const fs::path log = folder.path() / "out.log";
  std::ofstream(log) << "";
  fs::create_symlink(log, state / "log");
  fs::create_directories(folder.path() / "out.ranks");
  std::vector<std::string> expected;
  std::vector<std::unique_ptr<Child>> writing;
  for (const fs::path& file : {log, folder.path() / "out.ranks/0", folder.path() / "run/file"}) {
    const std::string command = "sleep 52" + std::to_string(writing.size());
    writing.push_back(std::make_unique<Child>(
        std::vector<std::string>{"/bin/sh", "-c",
                                 "unset DTOOL_RUN_ID; exec " + command + " >>" + file.string()},
        "/"));
    pid_t pid = 0;
    for (int i = 0; i < 500 && pid == 0; ++i) {
      pause(std::chrono::milliseconds(10));
      for (const Process& each : read_processes()) {
        if (each.parent == ::getpid() && command_of(each.pid, 60) == command) pid = each.pid;
      }
    }
    expected.push_back(std::to_string(pid) + " " + command);
  }
  const KillReply reply = kill();
  const auto said = std::ranges::find_if(reply.unseen, [](const std::string& each) {
    return each.starts_with("3 processes without the run's id in the run's folder");
  });
  ASSERT_NE(said, reply.unseen.end());
  for (const std::string& named : expected) EXPECT_NE(said->find(named), said->npos) << *said;
}

TEST_F(Kill, EndsTheScreenOfThatNameAndNoOther) {
  const std::string session = "dtool_unit_" + std::to_string(::getpid());
  for (const char* end : {"", "2"}) {
    const ChildResult begun =
        run_program({"screen", "-dmS", session + end, "sleep", "53"}, std::chrono::seconds(20));
    if (begun.is_missing) GTEST_SKIP() << "no screen is installed";
    ASSERT_TRUE(begun.ok());
  }
  const auto listed = [] { return run_program({"screen", "-ls"}, std::chrono::seconds(20)).out; };
  const KillReply reply = kill_run({"", {session}, {}, 100});
  EXPECT_GE(reply.ended, 1);
  EXPECT_TRUE(reply.left.empty());
  EXPECT_EQ(listed().find("." + session + "\t"), std::string::npos) << listed();
  EXPECT_NE(listed().find("." + session + "2\t"), std::string::npos) << listed();
  kill_run({"", {session + "2"}, {}, 100});
  EXPECT_EQ(listed().find("." + session), std::string::npos) << listed();
}

}  // namespace
}  // namespace dtool::host
