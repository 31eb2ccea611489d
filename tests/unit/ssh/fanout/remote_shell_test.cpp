// SPDX-License-Identifier: MIT
// A program on this machine runs commands through dtool's own connection. These tests are their own
// remote shell: see tests/unit/main.cpp.
#include "ssh/fanout/remote_shell.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "ssh/fanout/links.h"
#include "ssh/host_error.h"
#include "tests/unit/run_in.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

using std::chrono::milliseconds;
using tests::run_in;

class RemoteShell : public testing::Test {
 protected:
  /// The exit code of a shell line in which $shell is the remote shell's command line.
  int run(const std::string& line, std::string input = "", Deadline deadline = kNoDeadline) {
    LocalProgram program;
    program.arguments = {"bash", "-c", "shell=$1; " + line, "-", std::string(kRemoteShell)};
    program.input = std::move(input);
    return run(program, deadline);
  }

  int run(const LocalProgram& program, Deadline deadline = kNoDeadline) {
    std::function<void(Stream, std::string_view)> on_output = [this](Stream stream,
                                                                     std::string_view bytes) {
      (stream == Stream::out ? out : err) += bytes;
    };
    return run_in(reactor, run_local_program(reactor, *connection, program, on_output, deadline));
  }

  Reactor reactor;
  std::unique_ptr<Connection> connection = make_local_connection(reactor);
  std::string out;
  std::string err;
};

TEST_F(RemoteShell, CarriesBothWays) {
  EXPECT_EQ(run("echo hello | $shell host cat"), 0);
  EXPECT_EQ(out, "hello\n");
}

TEST_F(RemoteShell, PassesTheRemoteExitCodeOn) {
  EXPECT_EQ(run("$shell host 'exit 7'; echo code $?"), 0);
  EXPECT_EQ(out, "code 7\n");
}

TEST_F(RemoteShell, TellsTheProgramsOwnExitCode) {
  EXPECT_EQ(run("$shell host true; exit 9"), 9);
}

TEST_F(RemoteShell, JoinsWordsAsSshDoes) {
  EXPECT_EQ(run("$shell host echo a \"'b  c'\""), 0);
  EXPECT_EQ(out, "a b  c\n");
}

TEST_F(RemoteShell, TheRemoteErrorsAreHandedOn) {
  EXPECT_EQ(run("$shell host 'echo far >&2'; echo near >&2"), 0);
  EXPECT_NE(err.find("far\n"), std::string::npos);
  EXPECT_NE(err.find("near\n"), std::string::npos);
}

TEST_F(RemoteShell, AProgramThatNeverStartsItsShellJustEnds) {
  EXPECT_EQ(run("cat; exit 3", "input"), 3);
  EXPECT_EQ(out, "input");
}

TEST_F(RemoteShell, AProgramThatIsMissingIsNamed) {
  LocalProgram program;
  program.arguments = {"no-such-program", std::string(kRemoteShell)};
  try {
    run(program);
    FAIL() << "it was started";
  } catch (const HostError& error) {
    EXPECT_EQ(error.failure(), Failure::local_program);
    EXPECT_NE(std::string(error.what()).find("no-such-program"), std::string::npos);
  }
}

TEST_F(RemoteShell, MuchGoesBothWaysUnchanged) {
  const tests::TemporaryFolder folder;
  EXPECT_EQ(run("cd " + folder.path().string() +
                " && head -c 20000000 /dev/urandom > sent && $shell host cat < sent > received &&"
                " cmp sent received && stat -c %s received"),
            0);
  EXPECT_EQ(out, "20000000\n");
}

TEST_F(RemoteShell, ItsInputMayEndBeforeItsOutputBegins) {
  EXPECT_EQ(run("printf 'b\\na\\n' | $shell host sort"), 0);
  EXPECT_EQ(out, "a\nb\n");
}

TEST_F(RemoteShell, ARemoteCommandThatDoesNotReadItsInputEnds) {
  EXPECT_EQ(run("yes 2> /dev/null | $shell host 'exit 4'; exit ${PIPESTATUS[1]}"), 4);
}

TEST_F(RemoteShell, AProgramThatTakesTooLongIsEnded) {
  try {
    run("sleep 1000", "", after(milliseconds(100)));
    FAIL() << "it ended in time";
  } catch (const HostError& error) {
    EXPECT_EQ(error.failure(), Failure::timed_out);
  }
}

TEST_F(RemoteShell, ARemoteCommandThatTakesTooLongIsEnded) {
  EXPECT_THROW(run("$shell host 'sleep 1000'", "", after(milliseconds(300))), HostError);
}

TEST_F(RemoteShell, AProgramThatLeavesAChildBehindIsNotWaitedForForEver) {
  const Deadline bound = after(std::chrono::seconds(60));
  EXPECT_EQ(run("setsid sleep 90 & echo started"), 0);
  EXPECT_LT(Clock::now(), bound);
  EXPECT_EQ(out, "started\n");
}

TEST_F(RemoteShell, OnePutIntoAnotherFolderIsFound) {
  EXPECT_EQ(run("cd /; $shell host pwd"), 0);
  EXPECT_EQ(out, std::filesystem::path(std::getenv("HOME")).string() + "\n");
}

}  // namespace
}  // namespace dtool::ssh
