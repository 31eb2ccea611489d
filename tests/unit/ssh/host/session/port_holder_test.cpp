// SPDX-License-Identifier: MIT
// The process that holds a port for machine 0's session: that it has the port, and when it ends.
#include "ssh/host/session/report_port.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "ssh/host/child.h"
#include "ssh/host/network.h"
#include "ssh/host/process_table.h"
#include "ssh/host/session/job.h"
#include "tests/unit/own_program.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

const tests::OwnProgram kHolderProgram("hold", [](const std::vector<std::string>& arguments) {
  return arguments.size() == 3 ? run_port_holder(arguments[0], arguments[1], arguments[2]) : 1;
});

class PortHolder : public testing::Test {
 protected:
  PortHolder() { std::filesystem::create_directories(run_); }
  ~PortHolder() override {
    if (holder_ > 0) ::kill(holder_, SIGKILL);
    if (holder_ > 0) wait_for_child(holder_);
  }

  void hold(const std::string& above, const std::string& start) {
    holder_ = ::fork();
    if (holder_ == 0) ::_exit(run_port_holder(run_, above, start));
  }
  void hold(const Process& above) { hold(std::to_string(above.pid), std::to_string(above.start)); }

  bool ends() {
    const auto code = wait_for_child(holder_, 20s);
    if (code) holder_ = -1;
    return code == 0;
  }
  bool goes_on() const { return !wait_for_child(holder_, 300ms); }

  const tests::TemporaryFolder folder_;
  const std::string run_ = folder_.path() / "run 1";
  pid_t holder_ = -1;
};

TEST_F(PortHolder, WaitsForTheSessionToTryThePort) {
  for (const char* sign : {"supervision", "begun"}) {
    hold(find_process(::getpid()).value());
    EXPECT_TRUE(goes_on());
    const std::filesystem::path file = folder_.write("run 1/machine0/" + std::string(sign), "");
    EXPECT_TRUE(ends()) << sign;
    std::filesystem::remove(file);
  }
}

TEST_F(PortHolder, EndsWithTheRunsFolder) {
  hold("0", "0");
  EXPECT_TRUE(goes_on()) << "nothing is known of a process above";
  std::filesystem::remove_all(run_);
  EXPECT_TRUE(ends());
}

TEST_F(PortHolder, EndsWithTheProcessAbove) {
  const pid_t above = ::fork();
  if (above == 0) {
    ::pause();
    ::_exit(0);
  }
  const Process process = find_process(above).value();
  hold(process);
  EXPECT_TRUE(goes_on());
  ::kill(above, SIGKILL);
  EXPECT_TRUE(ends()) << "nobody has waited for it yet";
  wait_for_child(above);
  hold(process);
  EXPECT_TRUE(ends());
}

TEST_F(PortHolder, IsNotMisledByAnotherProcessWithThatNumber) {
  Process other = find_process(::getpid()).value();
  other.start += 1;
  hold(other);
  EXPECT_TRUE(ends());
}

TEST_F(PortHolder, WithoutAWordOfAProcessAboveTheFolderTells) {
  hold("x", "y");
  EXPECT_TRUE(goes_on());
  folder_.write("run 1/machine0/begun", "");
  EXPECT_TRUE(ends());
}

/// In a process group of its own, below the test, as sshd would start it.
std::uint16_t hold_in_group(const std::set<std::uint16_t>& taken, const std::string& run) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    const std::uint16_t port = hold_free_port(taken, run);
    ::_exit(::write(ends[1], &port, sizeof port) == sizeof port ? 0 : 1);
  }
  EXPECT_EQ(wait_for_child(child), 0);
  std::uint16_t port = 0;
  EXPECT_EQ(::read(ends[0], &port, sizeof port), static_cast<ssize_t>(sizeof port));
  for (const int each : ends) ::close(each);
  return port;
}

pid_t holder_of(const std::string& run_id) {
  for (const pid_t each : list_pids()) {
    if (read_run_mark(each).run_id == run_id) return each;
  }
  return -1;
}

TEST_F(PortHolder, HasAFreePortUntilTheSessionListensThere) {
  const std::uint16_t free =
      find_port([](std::uint16_t each) { return hold_port(each).is_open(); });
  std::set<std::uint16_t> taken;
  for (std::uint16_t each = 20'000; each < 32'000; ++each) {
    if (each != free) taken.insert(each);
  }
  const std::string run = folder_.path().filename();
  const std::string path = folder_.path();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  EXPECT_EQ(hold_in_group(taken, path), free);
  for (int i = 0; i < 2000 && holder_of(run) == -1; ++i) host::pause(5ms);
  holder_ = holder_of(run);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  ASSERT_NE(holder_, -1);
  EXPECT_FALSE(hold_port(free).is_open());
  EXPECT_TRUE(listen_on_held(free).is_open());
  EXPECT_TRUE(goes_on());
  folder_.write("machine0/begun", "");
  EXPECT_TRUE(ends());
  EXPECT_TRUE(hold_port(free).is_open());
}

TEST_F(PortHolder, IsNotThereWithoutAPort) {
  std::set<std::uint16_t> taken;
  for (std::uint16_t each = 20'000; each < 32'000; ++each) taken.insert(each);
  EXPECT_EQ(hold_in_group(taken, folder_.path()), 0);
  EXPECT_EQ(holder_of(folder_.path().filename()), -1);
}

}  // namespace
}  // namespace dtool::host
