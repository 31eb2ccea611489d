// SPDX-License-Identifier: MIT
// The command line that finds dtool-host on a host takes no program from a folder that another user
// made.
#include "ssh/fanout/host_program.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

namespace fs = std::filesystem;
using tests::TemporaryFolder;
using tests::TemporaryVariable;

constexpr uid_t kNobody = 65534;

/// Puts the program into the folder `parent`/dtool-host, as dtool does.
void put_program(const fs::path& parent, const std::string& content) {
  for (const HostProgramName& each : host_program_names()) {
    const fs::path folder = parent / "dtool-host" / each.sha256;
    fs::create_directories(folder);
    ASSERT_TRUE(host::write_in_place(folder / "dtool-host", content));
    fs::permissions(folder / "dtool-host", fs::perms::owner_all | fs::perms::others_exec);
  }
}

std::string run_line() {
  return host::run_program({"sh", "-c", host_program_line()}, std::chrono::seconds(20)).out;
}

/// Has its parent's folder `dtool-host` be, in turn, itself and the link `other` beside it.
[[noreturn]] void keep_swapping(const fs::path& parent) {
  const int folder = ::open(parent.c_str(), O_PATH | O_DIRECTORY);
  if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) ::_exit(1);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // setuid would take it back
  while (::renameat2(folder, "dtool-host", folder, "other", RENAME_EXCHANGE) == 0) continue;
  ::_exit(1);
}

TEST(NotBegun, NamesWhatWasSeenAndWhereItComesFrom) {
  const auto said = [](int exit_code, const std::string& out, const std::string& errors) {
    const HostError error = not_begun(exit_code, out, errors);
    return error.what() + std::string(" | ") + error.hint();
  };
  const auto names = [](const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
  };
  EXPECT_TRUE(names(said(139, "", ""), "signal 11 ended the log-in"));
  EXPECT_TRUE(names(said(0, "", ""), "~/.bashrc"));
  EXPECT_TRUE(names(said(1, "", ""), "/bin/false"));
  EXPECT_TRUE(names(said(254, "", "bash: fork: retry: Resource temporarily unavailable\n"),
                    "at a limit of processes"));
  EXPECT_TRUE(names(said(2, "", "sh: 0: Cannot fork\n"), "at a limit of processes"));
  EXPECT_TRUE(names(said(0, "welcome\n", ""), "(exit code 0): welcome |"));
}

TEST(HostProgramLine, AFolderOfTheUsersOwnIsUsed) {
  const TemporaryFolder home, fallback;
  const TemporaryVariable home_variable("HOME", home.path());
  const TemporaryVariable folder("XDG_RUNTIME_DIR", fallback.path());
  put_program(fallback.path(), "#!/bin/sh\necho found\n");
  EXPECT_EQ(run_line(), "dtool-host begins\nfound\n");
}

TEST(HostProgramLine, AnotherUsersFolderIsNotTakenForTheUsersThatALinkInItsPlaceLeadsTo) {
  if (::geteuid() != 0) GTEST_SKIP() << "another user's folder takes root to make";
  const TemporaryFolder home, shared;
  const TemporaryVariable home_variable("HOME", home.path());
  const TemporaryVariable folder("XDG_RUNTIME_DIR", shared.path());
  put_program(shared.path(), "#!/bin/sh\necho owned\n");
  ASSERT_EQ(::chmod(shared.path().c_str(), 01777), 0);
  ASSERT_EQ(::symlink("/", (shared.path() / "other").c_str()), 0);
  for (const char* each : {"dtool-host", "other"})
    ASSERT_EQ(::lchown((shared.path() / each).c_str(), kNobody, kNobody), 0);
  const pid_t other = ::fork();
  if (other == 0) keep_swapping(shared.path());
  int times = 0;
  for (int i = 0; i < 400; ++i) times += run_line().find("owned") == std::string::npos ? 0 : 1;
  EXPECT_EQ(times, 0);
  EXPECT_EQ(::waitpid(other, nullptr, WNOHANG), 0);
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
}

}  // namespace
}  // namespace dtool::ssh
