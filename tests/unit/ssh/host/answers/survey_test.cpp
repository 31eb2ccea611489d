// SPDX-License-Identifier: MIT
// What a host tells of its user, cores, memory, disks and names.
#include "ssh/host/answers/survey.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

#include "ssh/host/session/job.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

using tests::TemporaryFolder;
using tests::TemporaryVariable;

TEST(PasswdField, IsOfTheLineWithTheUsersNumber) {
  const std::string text =
      "root:x:0:0:root:/root:/bin/sh\n1000:1000\nshort:x:5\n"
      "ann:x:1000:100::/home/ann:/bin/zsh\n";
  EXPECT_EQ(passwd_field(text, 1000, 0), "ann");
  EXPECT_EQ(passwd_field(text, 1000, 6), "/bin/zsh");
  EXPECT_EQ(passwd_field(text, 0, 6), "/bin/sh");
  EXPECT_EQ(passwd_field(text, 5, 0), "short");
  for (const std::size_t field : {3U, 6U}) EXPECT_EQ(passwd_field(text, 5, field), "");
  EXPECT_EQ(passwd_field(text, 100, 0), "");
  EXPECT_EQ(passwd_field("", 0, 0), "");
}

TEST(QuotaOfCores, IsTheLeastOfAGroupAndThoseAboveItRoundedDown) {
  const TemporaryFolder folder;
  const auto quota = [&folder] { return quota_of_cores("0::/a/b\n", folder.path()); };
  EXPECT_EQ(quota(), std::nullopt);
  folder.write("a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  folder.write("a/b/cpu.max", "399999 100000\n");
  EXPECT_EQ(quota(), 3);
  folder.write("a/cpu.max", "500000 100000\n");
  EXPECT_EQ(quota(), 3);
  folder.write("cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2);
  folder.write("a/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota(), 1) << "less than a core is one";
}

TEST(QuotaOfCores, IsNoneWhereItsFileSaysNone) {
  const TemporaryFolder folder;
  for (const char* text : {"", "100000\n", "x 100000\n", "-1 100000\n", "0 100000\n", "100000 0\n",
                           "100000 -1\n", "100000 x\n"}) {
    folder.write("cpu.max", text);
    EXPECT_EQ(quota_of_cores("0::/\n", folder.path()), std::nullopt) << text;
  }
}

TEST(QuotaOfCores, OfTheOlderKindIsTakenFromTheGroupOfCpu) {
  const TemporaryFolder folder;
  folder.write("cpu/g/cpu.cfs_quota_us", "400000\n");
  folder.write("cpu/g/cpu.cfs_period_us", "100000\n");
  folder.write("g/cpu.max", "100000 100000\n");
  for (const char* groups : {"5:cpu,cpuacct:/g\n", "5:cpuacct,cpu:/g\n", "5:cpu:/g\n",
                             "4:memory:/g\nodd\n0::\n1:cpu:\n5:cpu:/g\n"})
    EXPECT_EQ(quota_of_cores(groups, folder.path()), 4) << groups;
  for (const char* groups : {"4:memory:/g\n", "5:cpuacct:/g\n", "1:name=cpu:/g\n", "", "odd"})
    EXPECT_EQ(quota_of_cores(groups, folder.path()), std::nullopt) << groups;
  EXPECT_EQ(quota_of_cores("5:cpu:/g\n0::/g\n", folder.path()), 1) << "both kinds count";
}

TEST(MemoryOf, IsALineInKibibytes) {
  const std::string text = "MemTotal:       16 kB\nMemFree: 3 kB\nSwap: x\n";
  EXPECT_EQ(memory_of(text, "MemTotal:"), 16384);
  EXPECT_EQ(memory_of(text, "MemFree:"), 3072);
  EXPECT_EQ(memory_of(text, "Swap:"), 0);
  EXPECT_EQ(memory_of(text, "MemAvailable:"), 0);
}

TEST(LoopbackOf, IsTheFirstAddressOfTheNameIfNoOtherMachineReachesIt) {
  const std::string text =
      "127.0.0.1 localhost\n# 127.0.1.1 h5\n127.0.1.1\th1.example h1 # h2\n10.0.0.3 h3 h4\n"
      "127.0.1.4 h4\n";
  EXPECT_EQ(loopback_of(text, "h1"), "127.0.1.1");
  EXPECT_EQ(loopback_of(text, "h1.example"), "127.0.1.1");
  for (const char* other : {"h2", "h3", "h4", "h5", "h", "127.0.1.1"})
    EXPECT_EQ(loopback_of(text, other), "") << other;
}

TEST(HostSurvey, NamesTheUserByTheLoginElseByNumber) {
  const passwd* own = ::getpwuid(::getuid());
  ASSERT_NE(own, nullptr);
  const TemporaryVariable name("USER", "ann");
  EXPECT_EQ(user_name(), "ann");
  const TemporaryVariable none("USER", "");
  EXPECT_EQ(user_name(), own->pw_name);
  EXPECT_EQ(survey_host("/").user, own->pw_name);
  EXPECT_EQ(survey_host("/").shell, own->pw_shell);
}

TEST(HostSurvey, NamesTheSystemAndItsProcessor) {
  utsname kernel{};
  ::uname(&kernel);
  const std::string name = os_release("PRETTY_NAME");
  EXPECT_EQ(survey_host("/").system,
            (name.empty() ? std::string(kernel.sysname) : name) + ", " + kernel.machine);
}

TEST(HostSurvey, ADiskThatCannotBeAskedHasNoKnownRoom) {
  EXPECT_EQ(survey_host("/no/such/folder").free_code, -1);
  EXPECT_EQ(survey_host("/proc").free_code, -1) << "no disk";
  EXPECT_GT(survey_host("/").free_home, 0);
  EXPECT_GT(survey_host("/").free_memory, 0);
}

TEST(HostSurvey, TellsOfTmuxOnlyWhereItTakesScreensPlace) {
  const TemporaryFolder folder;
  const TemporaryVariable path("PATH", folder.path().string());
  const auto add = [&folder](const char* name, const std::string& said) {
    std::filesystem::permissions(folder.write(name, "#!/bin/sh\n" + said),
                                 std::filesystem::perms::owner_all);
  };
  EXPECT_EQ(survey_host("/").tmux, "");
  add("tmux", "[ $1 = -V ] && printf 'tmux 3.3a\\nmore\\n'");
  EXPECT_EQ(survey_host("/").tmux, "tmux 3.3a");
  add("screen", "echo Screen version 4.09.00");
  add("rsync", "echo rsync  version 3.2.7");
  EXPECT_EQ(survey_host("/").tmux, "");
  EXPECT_EQ(survey_host("/").screen, "4.09.00");
  EXPECT_EQ(survey_host("/").rsync, "3.2.7");
  EXPECT_EQ(survey_host("/").bash, "");
}

TEST(HostHardware, HasTheCoresThatThisProcessMayUse) {
  cpu_set_t all;
  CPU_ZERO(&all);
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  EXPECT_LE(find_hardware({}).cores, CPU_COUNT(&all));
  const pid_t child = ::fork();
  if (child == 0) {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (std::size_t each = 0; CPU_COUNT(&one) == 0; ++each)
      if (CPU_ISSET(each, &all)) CPU_SET(each, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    ::_exit(static_cast<int>(find_hardware({}).cores));
  }
  EXPECT_EQ(wait_for_child(child), 1);
}

}  // namespace
}  // namespace dtool::host
