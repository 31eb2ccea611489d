// SPDX-License-Identifier: MIT
// What a host lacks of the programs that dtool's scripts use, where only those are there that a
// test puts into PATH.
#include "ssh/host/answers/survey.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "ssh/host/files.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

namespace fs = std::filesystem;

using Names = std::vector<std::string>;

class LacksTest : public testing::Test {
 protected:
  LacksTest() { add("bash", "echo '502 5.2.15'"); }

  void add(const std::string& name, const std::string& lines = "") const {
    fs::permissions(home_.write("bin/" + name, "#!/bin/sh\n" + lines + "\n"), fs::perms::owner_all);
  }
  void take_away(const char* name) const { fs::remove(home_.path() / "bin" / name); }

  static ProgramLacks find(const Wants& wants = {}, Screen screen = Screen::tried) {
    return find_lacks(wants, screen, Scripts::none);
  }

  const tests::TemporaryFolder home_;
  const tests::TemporaryVariable variable_{"HOME", home_.path().string()};
  const tests::TemporaryVariable path_{"PATH", home_.path().string() + "/bin"};
};

TEST_F(LacksTest, AreNamedWithThePackageManagerOnlyIfThereAreAny) {
  add("apk");
  add("tmux");
  add("rsync");
  EXPECT_EQ(find().programs, Names());
  EXPECT_EQ(find().old_bash, "");
  EXPECT_EQ(find().package_manager, "");
  add("bash", "echo '402 4.2.46'");
  EXPECT_EQ(find().package_manager, "apk");
  take_away("bash");
  EXPECT_EQ(find().programs, Names{"bash"});
  EXPECT_EQ(find().old_bash, "");
  EXPECT_EQ(find().package_manager, "apk");
  add("bash", "echo '502 5.2.15'");
  take_away("tmux");
  EXPECT_EQ(find().package_manager, "apk");
}

TEST_F(LacksTest, ARunNeedsNoRsyncButFetchDoes) {
  add("apk");
  add("tmux");
  EXPECT_EQ(find().programs, Names());
  EXPECT_EQ(find().package_manager, "apk");
}

TEST_F(LacksTest, ScriptsMissTheirPrograms) {
  const auto programs = [] { return find_lacks({}, Screen::found, Scripts::some).programs; };
  EXPECT_EQ(programs(), (Names{"awk", "grep", "head", "mktemp", "sed", "tail", "timeout"}));
  for (const char* each : {"awk", "grep", "head", "mktemp", "sed", "timeout"}) add(each);
  EXPECT_EQ(programs(), Names{"tail"});
}

TEST_F(LacksTest, ASessionNeedsScreenOrTmux) {
  EXPECT_FALSE(find().has_terminal);
  EXPECT_TRUE(find({false}).has_terminal);
  for (const char* each : {"screen", "tmux"}) {
    add(each);
    EXPECT_TRUE(find().has_terminal) << each;
    take_away(each);
  }
}

TEST_F(LacksTest, ABashIsTooOldIfItSaysSo) {
  const auto old = [this](const std::string& lines) {
    add("bash", lines);
    return find().old_bash;
  };
  EXPECT_EQ(old("echo '403 4.3.1'"), "4.3.1");
  EXPECT_EQ(old("echo '404 4.4.1'"), "");
  EXPECT_EQ(old("echo 'odd 2.05'"), "2.05");
  EXPECT_EQ(old("echo '403 4.3.1'; exit 1"), "");
}

TEST_F(LacksTest, ScreensFaultIsTheLastLineThatItSays) {
  const auto fault = [this](const std::string& lines, bool is_wanted = true) {
    add("screen", lines);
    return find({is_wanted}).screen_fault;
  };
  EXPECT_EQ(fault("echo 'No Sockets found in /run/screen.'; exit 1"), "");
  EXPECT_EQ(fault("echo '1 Socket in /run.'; echo more"), "");
  EXPECT_EQ(fault("printf 'one\\ntwo\\n\\n'"), "two");
  EXPECT_EQ(fault("echo one; echo two >&2"), "two");
  EXPECT_EQ(fault("exit 1"), "it says nothing");
  EXPECT_EQ(fault("exit 1", false), "") << "no session is wanted";
  EXPECT_EQ(find({}, Screen::found).screen_fault, "");
  take_away("screen");
  EXPECT_EQ(find().screen_fault, "");
}

TEST_F(LacksTest, LocksAreTriedInDtoolsFolderElseAtHomeAndNothingIsLeft) {
  const auto is_tried_in = [](const fs::path& folder) {
    const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
    fs::last_write_time(folder, old);
    EXPECT_EQ(find().lock_fault, "");
    return fs::last_write_time(folder) != old;
  };
  const fs::path own = home_.path() / ".dtool";
  EXPECT_TRUE(is_tried_in(home_.path()));
  EXPECT_FALSE(fs::exists(own));
  fs::create_directory(own);
  EXPECT_TRUE(is_tried_in(own));
  EXPECT_FALSE(is_tried_in(home_.path()));
  EXPECT_TRUE(fs::is_empty(own));
}

TEST_F(LacksTest, ALockThatAnotherHostHoldsIsNoFaultOfTheDisk) {
  const std::string file = home_.write(".dtool/.lock_trial." + std::to_string(::getpid()));
  const Descriptor other(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  EXPECT_EQ(find().lock_fault, "");
}

TEST_F(LacksTest, AHomeThatIsNotThereIsNoFaultOfItsLocks) {
  const tests::TemporaryVariable home("HOME", "/no/such/folder");
  EXPECT_EQ(find().lock_fault, "");
}

TEST_F(LacksTest, ThePackageManagerIsTheSystemsOwnElseTheFirst) {
  EXPECT_EQ(find_package_manager("debian "), "");
  add("dnf");
  EXPECT_EQ(find_package_manager("debian "), "dnf");
  add("apt-get");
  EXPECT_EQ(find_package_manager("fedora "), "dnf");
  EXPECT_EQ(find_package_manager("rocky rhel centos fedora"), "dnf");
  for (const char* kinds : {"linuxmint ubuntu debian", "arch ", " ", "", "fedora2", "dora"})
    EXPECT_EQ(find_package_manager(kinds), "apt-get") << kinds;
}

TEST_F(LacksTest, AVersionIsTheFirstNumberWithAPointAndMore) {
  const auto version = [this](const std::string& lines) {
    add("speaker", lines);
    return version_of("speaker");
  };
  EXPECT_EQ(version("echo 7 of v1..2, or 1. or 3.2"), "3.2");
  EXPECT_EQ(version("echo 5.2.15 >&2"), "5.2.15");
  EXPECT_EQ(version("echo none"), "");
}

TEST(OsRelease, IsReadWithoutQuotes) {
  const std::string text = "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n";
  EXPECT_EQ(value_of_release(text, "ID"), "debian");
  EXPECT_EQ(value_of_release(text, "PRETTY_NAME"), "Debian GNU/Linux 12");
  EXPECT_EQ(value_of_release(text, "NAME"), "");
}

}  // namespace
}  // namespace dtool::host
