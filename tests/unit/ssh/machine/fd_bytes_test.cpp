// SPDX-License-Identifier: MIT
// Bytes go between descriptors whole and in order, and not past a deadline.
#include "ssh/machine/fd_bytes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>

#include "ssh/machine/process.h"
#include "tests/unit/run_in.h"

namespace dtool::ssh {
namespace {

using std::chrono::milliseconds;
using tests::run_in;

/// A pipe of which neither end blocks: both are driven by one thread here.
Pipe make_test_pipe() {
  Pipe pipe = make_pipe(NonBlocking::both);
  ::signal(SIGPIPE, SIG_IGN);
  return pipe;
}

asio::awaitable<void> write_and_close(Reactor& reactor, Pipe& pipe, std::string text) {
  const std::string_view view = text;
  co_await write_all(reactor, pipe.writer.get(), view, kNoDeadline);
  pipe.writer.reset();
}

asio::awaitable<std::string> carry(Reactor& reactor, Pipe& pipe, std::string text) {
  std::string received;
  std::function<void(std::string_view)> on_bytes = [&received](std::string_view bytes) {
    received += bytes;
  };
  const Deadline deadline = kNoDeadline;
  TaskGroup group(reactor);
  group.spawn(write_and_close(reactor, pipe, text));
  co_await read_all(reactor, pipe.reader.get(), on_bytes, &deadline);
  co_await group.join();
  co_return received;
}

TEST(FdBytes, CarriesEveryByteThroughAPipeThatIsMuchSmaller) {
  Reactor reactor;
  Pipe pipe = make_test_pipe();
  std::string text(3'000'000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 2654435761U >> 13);
  EXPECT_TRUE(run_in(reactor, carry(reactor, pipe, text)) == text);
}

TEST(FdBytes, CarriesNothing) {
  Reactor reactor;
  Pipe pipe = make_test_pipe();
  EXPECT_EQ(run_in(reactor, carry(reactor, pipe, "")), "");
}

TEST(WriteAll, TellsThatTheReaderHasGone) {
  Reactor reactor;
  Pipe pipe = make_test_pipe();
  pipe.reader.reset();
  EXPECT_FALSE(run_in(reactor, write_all(reactor, pipe.writer.get(), "x", kNoDeadline)));
}

TEST(WriteAll, GivesUpAtItsDeadlineWhereNobodyReads) {
  Reactor reactor;
  const Pipe pipe = make_test_pipe();
  const std::string much(1'000'000, 'x');
  const Deadline deadline = after(milliseconds(30));
  EXPECT_FALSE(run_in(reactor, write_all(reactor, pipe.writer.get(), much, deadline)));
}

/// Bytes that were read until `deadline`.
asio::awaitable<std::size_t> count_bytes(Reactor& reactor, int fd, const Deadline& deadline) {
  std::size_t count = 0;
  std::function<void(std::string_view)> on_bytes = [&count](std::string_view bytes) {
    count += bytes.size();
  };
  co_await read_all(reactor, fd, on_bytes, &deadline);
  co_return count;
}

TEST(ReadAll, EndsAtADeadlineWhereNothingComes) {
  Reactor reactor;
  const Pipe pipe = make_test_pipe();
  const Deadline deadline = after(milliseconds(30));
  EXPECT_EQ(run_in(reactor, count_bytes(reactor, pipe.reader.get(), deadline)), 0U);
}

asio::awaitable<void> set_later(Reactor& reactor, Deadline& deadline) {
  co_await reactor.sleep(milliseconds(20));
  deadline = Clock::now();
}

asio::awaitable<void> read_with_moving_deadline(Reactor& reactor, int fd) {
  Deadline deadline = kNoDeadline;
  TaskGroup group(reactor);
  group.spawn(set_later(reactor, deadline));
  co_await count_bytes(reactor, fd, deadline);
  co_await group.join();
}

TEST(ReadAll, SeesADeadlineThatIsSetMeanwhile) {
  Reactor reactor;
  const Pipe pipe = make_test_pipe();
  run_in(reactor, read_with_moving_deadline(reactor, pipe.reader.get()));
}

TEST(ReadAll, BringsWhatIsThereAlreadyAtItsDeadline) {
  Reactor reactor;
  const Pipe pipe = make_test_pipe();
  const std::string text(60'000, 'x');
  ASSERT_EQ(::write(pipe.writer.get(), text.data(), text.size()), 60'000);
  const Deadline past = Clock::now();
  EXPECT_EQ(run_in(reactor, count_bytes(reactor, pipe.reader.get(), past)), 60'000U);
}

TEST(ReadAll, EndsSoonAfterItsDeadlineWhereTheWriterNeverStops) {
  Reactor reactor;
  const Pipe pipe = make_test_pipe();
  Process::Program program;
  program.arguments = {"yes"};
  Process::Descriptors descriptors;
  descriptors.out = pipe.writer.get();
  const Process process(reactor, program, descriptors);
  const Deadline deadline = after(milliseconds(30));
  EXPECT_GT(run_in(reactor, count_bytes(reactor, pipe.reader.get(), deadline)), 0U);
}

}  // namespace
}  // namespace dtool::ssh
