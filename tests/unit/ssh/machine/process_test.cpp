// Programs on this machine: found, started clean, waited for, ended with all that they started.
#include "ssh/machine/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "ssh/host_error.h"
#include "ssh/machine/fd_bytes.h"
#include "tests/unit/run_in.h"

namespace dtool::ssh {
namespace {

using std::chrono::milliseconds;
using tests::run_in;

Process::Program shell(std::string line) {
  Process::Program program;
  program.arguments = {"sh", "-c", std::move(line)};
  return program;
}

struct Ended {
  int exit_code = -1;
  std::string out;
};

asio::awaitable<Ended> finish(Reactor& reactor, Process::Program program) {
  Ended ended;
  std::function<void(std::string_view)> on_bytes = [&ended](std::string_view bytes) {
    ended.out += bytes;
  };
  Pipe pipe = make_pipe(NonBlocking::reader);
  Process::Descriptors descriptors;
  descriptors.out = pipe.writer.get();
  descriptors.err = pipe.writer.get();
  Process process(reactor, program, descriptors);
  pipe.writer.reset();
  const Deadline deadline = kNoDeadline;
  co_await read_all(reactor, pipe.reader.get(), on_bytes, &deadline);
  ended.exit_code = co_await process.wait(kNoDeadline);
  co_return ended;
}

Ended run(const Process::Program& program) {
  Reactor reactor;
  return run_in(reactor, finish(reactor, program));
}

TEST(Process, TellsItsExitCode) {
  EXPECT_EQ(run(shell("exit 0")).exit_code, 0);
  EXPECT_EQ(run(shell("exit 7")).exit_code, 7);
  EXPECT_EQ(run(shell("kill -KILL $$")).exit_code, 137);
}

TEST(Process, IsFoundByPath) {
  EXPECT_EQ(run(shell("echo hello")).out, "hello\n");
}

TEST(Process, GetsItsWordsVariablesAndFolder) {
  Process::Program program;
  program.arguments = {"sh", "-c", "printf '%s|' \"$@\" \"$DTOOL_TEST_X\"; pwd", "-", "a  b",
                       "",   "'"};
  program.environment = {"DTOOL_TEST_X=y z"};
  program.folder = "/usr";
  EXPECT_EQ(run(program).out, "a  b||'|y z|/usr\n");
}

TEST(Process, ThatIsMissingIsNamed) {
  Reactor reactor;
  Process::Program program;
  program.arguments = {"no-such-program"};
  try {
    const Process process(reactor, program, {});
    FAIL() << "it was started";
  } catch (const HostError& error) {
    EXPECT_EQ(error.failure(), Failure::local_program);
    EXPECT_STREQ(error.what(),
                 "cannot run no-such-program on this machine: No such file or directory");
  }
}

TEST(Process, WhoseFolderIsMissingSaysSo) {
  Reactor reactor;
  Process::Program program;
  program.arguments = {"true"};
  program.folder = "/no-such-folder";
  try {
    const Process process(reactor, program, {});
    FAIL() << "it was started";
  } catch (const HostError& error) {
    EXPECT_STREQ(error.what(),
                 "cannot enter the folder /no-such-folder on this machine: "
                 "No such file or directory");
  }
}

TEST(Process, InheritsNothingButWhatIsNamed) {
  const Pipe kept_to_ourselves = make_pipe(NonBlocking::reader);
  // 255 is bash's own, where sh is bash; ls has one open on the folder that it lists.
  EXPECT_EQ(
      run(shell("for fd in 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$fd ] && echo $fd; done; :")).out,
      "");
}

TEST(Process, ReadsNothingAndWritesNowhereWhereItIsGivenNoDescriptors) {
  Reactor reactor;
  Process process(reactor, shell("cat; echo lost; echo lost >&2; exit 3"), {});
  EXPECT_EQ(run_in(reactor, process.wait(kNoDeadline)), 3);
}

TEST(Process, GetsDefaultSignals) {
  ::signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(run(shell("kill -PIPE $$; echo survived")).exit_code, 128 + SIGPIPE);
}

bool is_alive(pid_t pid) {
  if (::kill(pid, 0) != 0) return false;
  std::FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "r");
  if (file == nullptr) return false;
  char line[256] = {};
  const bool is_read = std::fgets(line, sizeof line, file) != nullptr;
  std::fclose(file);
  return is_read && std::string(line).find(") Z ") == std::string::npos;
}

bool ends(pid_t pid) {
  for (int i = 0; i < 200 && is_alive(pid); ++i) std::this_thread::sleep_for(milliseconds(50));
  return !is_alive(pid);
}

asio::awaitable<pid_t> read_pid(Reactor& reactor, int fd) {
  std::string text;
  std::function<void(std::string_view)> on_bytes = [&text](std::string_view bytes) {
    text += bytes;
  };
  while (text.find('\n') == std::string::npos) {
    const Deadline soon = after(milliseconds(20));
    co_await read_all(reactor, fd, on_bytes, &soon);
  }
  co_return static_cast<pid_t>(std::stoi(text));
}

TEST(Process, ThatTakesTooLongIsEndedWithItsChildren) {
  Reactor reactor;
  const Pipe pipe = make_pipe(NonBlocking::reader);
  Process::Descriptors descriptors;
  descriptors.out = pipe.writer.get();
  Process process(reactor, shell("sleep 1000 & echo $!; wait"), descriptors);
  const pid_t child = run_in(reactor, read_pid(reactor, pipe.reader.get()));
  EXPECT_TRUE(is_alive(child));
  try {
    run_in(reactor, process.wait(after(milliseconds(20))));
    FAIL() << "it ended in time";
  } catch (const HostError& error) {
    EXPECT_EQ(error.failure(), Failure::timed_out);
  }
  EXPECT_TRUE(ends(child));
}

TEST(Process, ThatIgnoresTermIsKilled) {
  Reactor reactor;
  const Pipe pipe = make_pipe(NonBlocking::reader);
  Process::Descriptors descriptors;
  descriptors.out = pipe.writer.get();
  pid_t child = 0;
  {
    Process process(reactor, shell("trap '' TERM; echo $$; while :; do sleep 0.1; done"),
                    descriptors);
    child = run_in(reactor, read_pid(reactor, pipe.reader.get()));
    EXPECT_THROW(run_in(reactor, process.wait(after(milliseconds(20)))), HostError);
  }
  EXPECT_TRUE(ends(child));
}

TEST(Process, ThatNobodyWaitedForEndsWithItsOwner) {
  Reactor reactor;
  const Pipe pipe = make_pipe(NonBlocking::reader);
  Process::Descriptors descriptors;
  descriptors.out = pipe.writer.get();
  pid_t child = 0;
  {
    const Process process(reactor, shell("sleep 1000 & echo $!; wait"), descriptors);
    child = run_in(reactor, read_pid(reactor, pipe.reader.get()));
  }
  EXPECT_TRUE(ends(child));
}

}  // namespace
}  // namespace dtool::ssh
