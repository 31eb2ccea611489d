// SPDX-License-Identifier: MIT
// dtool-host for the other processor, in an emulator of that: it looks at this machine, sends a log
// and ends a run's processes. It cannot start itself again there, so sessions are left out.
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "killfiles/channel/sha256.h"
#include "ssh/wire/check.h"
#include "ssh/wire/protocol.h"
#include "ssh/wire/run.h"
#include "tests/unit/syntax.h"

namespace dtool::host {
namespace {

const std::string kProgram = DTOOL_OTHER_HOST_FILE;
const std::string kEmulator = DTOOL_EMULATOR;

class OtherProcessor : public testing::Test {
 protected:
  void SetUp() override {
    if (kProgram.empty()) GTEST_SKIP() << "no compiler for it: g++-aarch64-linux-gnu is missing";
    if (kEmulator.empty()) GTEST_SKIP() << "no emulator of it: qemu-user-static is missing";
  }

  template <typename Reply, typename Request>
  Reply ask(const Request& request) {
    const auto file = folder_.write("requests", to_frame(request));
    const std::string said =
        tests::output_of(kEmulator + " " + kProgram + " serve < " + file.string());
    EXPECT_TRUE(said.starts_with(kGreeting)) << said;
    FrameReader reader;
    reader.add(std::string_view(said).substr(std::min(kGreeting.size(), said.size())));
    return open<Reply>(reader.next().value());
  }

  tests::TemporaryFolder folder_;
};

TEST_F(OtherProcessor, KnowsItsOwnContent) {
  const std::string hash = to_hex(sha256(tests::read_text(kProgram)));
  EXPECT_EQ(tests::output_of(kEmulator + " " + kProgram + " verify " + hash), hash + "\n");
  EXPECT_EQ(tests::output_of(kEmulator + " " + kProgram + " verify " + std::string(64, '0')),
            "exit code 1\n");
}

TEST_F(OtherProcessor, LooksAtTheMachine) {
  const tests::TemporaryVariable home("HOME", folder_.path().string());
  CheckRequest request;
  request.is_survey = true;
  request.run_folder = "~/.dtool/runs/x_1";
  request.port = 0;
  const auto reply = ask<CheckReply>(request);
  EXPECT_FALSE(reply.is_home_read_only);
  EXPECT_GE(reply.port, 20000);
  ASSERT_TRUE(reply.survey);
  EXPECT_NE(reply.survey->bash, "");
  EXPECT_GT(reply.hardware.memory, 0);
}

TEST_F(OtherProcessor, SendsALog) {
  const auto log = folder_.write("log", "one\ntwo\nthree\n");
  LogRequest request;
  request.log = log.string();
  request.lines = 2;
  EXPECT_EQ(ask<LogBegin>(request).offset, 4U);
}

TEST_F(OtherProcessor, EndsTheProcessesOfARun) {
  const std::string run_id = "other_processor_" + std::to_string(::getpid());
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("DTOOL_RUN_ID", run_id.c_str(), 1);
    ::execlp("sleep", "sleep", "60", nullptr);
    ::_exit(1);
  }
  ::usleep(200'000);
  KillRequest request;
  request.run_id = run_id;
  const auto reply = ask<KillReply>(request);
  EXPECT_EQ(reply.ended, 1);
  EXPECT_TRUE(reply.left.empty());
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
}

}  // namespace
}  // namespace dtool::host
