// SPDX-License-Identifier: MIT
// What holds a job's terminal: which programs are tried, and how they are called.
#include "ssh/host/start_job.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "ssh/host/versions.h"
#include "tests/unit/refused_calls.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

/// Programs `screen` and `tmux` that note how they were called, in the folder where they were.
struct HolderTest : testing::Test {
  HolderTest() { folder.write("state/made", ""); }

  void make(const std::string& name, const std::string& then) const {
    const auto file = folder.write("bin/" + name,
                                   "#!/bin/sh\necho \"$0 $*\" >called\n"
                                   "echo \"${TMUX-no other}\" >tmux\n" +
                                       then + "\n");
    ASSERT_EQ(::chmod(file.c_str(), 0755), 0);
  }
  std::string hold(Holder holder) const {
    return hold_session(holder, "run_1", folder.path() / "state", "/the/log");
  }
  std::string called() const { return folder.read("state/called"); }

  const tests::TemporaryFolder folder;
  const std::string bin = folder.path() / "bin";
  const tests::TemporaryVariable path{"PATH", bin + ":/usr/bin:/bin"};
  /// What is started in place of dtool-host is this program: it does nothing then.
  const tests::TemporaryVariable no_tests{"GTEST_FILTER", "-*"};
};

TEST_F(HolderTest, ScreenIsTriedBeforeTmuxAndNoneIsTheLast) {
  const tests::TemporaryVariable only("PATH", bin);
  EXPECT_EQ(find_holders(), std::vector<Holder>{Holder::none});
  make("tmux", "");
  EXPECT_EQ(find_holders(), (std::vector<Holder>{Holder::tmux, Holder::none}));
  make("screen", "");
  EXPECT_EQ(find_holders(), (std::vector<Holder>{Holder::screen, Holder::tmux, Holder::none}));
}

TEST_F(HolderTest, HasAName) {
  EXPECT_EQ(name_of(Holder::screen), "screen");
  EXPECT_EQ(name_of(Holder::tmux), "tmux");
  EXPECT_EQ(name_of(Holder::none), "none");
}

TEST_F(HolderTest, ScreenHoldsTheSessionUnderItsName) {
  make("screen", "");
  EXPECT_EQ(hold(Holder::screen), "");
  EXPECT_EQ(called(), bin + "/screen -dmS run_1 " + own_path() + " session /the/log\n");
}

TEST_F(HolderTest, TmuxHoldsItOnAServerOfItsOwn) {
  make("tmux", "");
  const tests::TemporaryVariable users("TMUX", "of the user");
  EXPECT_EQ(hold(Holder::tmux), "");
  EXPECT_TRUE(called().starts_with(bin + "/tmux -S tmux -f /dev/null new-session -d -s job " +
                                   own_path() + " session /the/log ;"))
      << called();
  EXPECT_EQ(folder.read("state/tmux"), "no other\n");
}

TEST_F(HolderTest, SaysWhyOneDidNotStart) {
  make("screen", "echo said; echo and cried >&2; exit 1");
  EXPECT_EQ(hold(Holder::screen), "screen did not start: said and cried");
  make("tmux", "exit 1");
  EXPECT_EQ(hold(Holder::tmux), "tmux did not start: ");
}

TEST_F(HolderTest, WithoutOneTheSessionIsStartedByItself) {
  EXPECT_EQ(hold(Holder::none), "");
  EXPECT_EQ(called(), "");
  EXPECT_EXIT(
      {
        tests::refuse_processes(EAGAIN);
        std::fputs(hold(Holder::none).c_str(), stderr);
        ::_exit(0);
      },
      testing::ExitedWithCode(0), "^no process can be made: ");
}

}  // namespace
}  // namespace dtool::host
