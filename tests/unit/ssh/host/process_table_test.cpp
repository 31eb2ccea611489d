// SPDX-License-Identifier: MIT
// Processes are read as the kernel shows them, whatever they call themselves.
#include "ssh/host/process_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "ssh/host/child.h"

namespace dtool::host {
namespace {

const std::string kRest =
    " S 10 20 30 0 -1 4194560 1 2 3 4 50 60 7 8 20 0 1 0 12345 1000 77 0 0 0 0 0\n";

TEST(ParseStat, ReadsTheFieldsThatProc5Names) {
  const auto process = parse_stat("42 (name)" + kRest);
  ASSERT_TRUE(process);
  EXPECT_EQ(process->pid, 42);
  EXPECT_EQ(process->parent, 10);
  EXPECT_EQ(process->session, 30);
  EXPECT_EQ(process->threads, 1);
  EXPECT_EQ(process->start, 12345U);
  EXPECT_EQ(process->cpu_ticks, 110U);
  EXPECT_EQ(process->resident_pages, 77U);
}

TEST(ParseStat, TakesTheNameThatAProgramGaveItself) {
  for (const std::string name : {"a) R 1 (b", "line\nend", ") ", "", "()"}) {
    const auto process = parse_stat("42 (" + name + ")" + kRest);
    ASSERT_TRUE(process) << name;
    EXPECT_EQ(process->name, name);
    EXPECT_EQ(process->parent, 10) << name;
  }
}

TEST(ParseStat, WhatIsNotOneIsRefused) {
  for (const std::string text : {"", "42", "42 (x)", "x (y) S 1 2 3", "42 (x) S 1 2 3"})
    EXPECT_FALSE(parse_stat(text)) << text;
}

TEST(ReadProcesses, SeesThisOne) {
  const auto processes = read_processes();
  const auto self = std::ranges::find(processes, ::getpid(), &Process::pid);
  ASSERT_NE(self, processes.end());
  EXPECT_EQ(self->parent, ::getppid());
  EXPECT_EQ(user_of(::getpid()), ::getuid());
  EXPECT_FALSE(self->is_dead());
}

/// From now on this process can open folders only, as where others have taken the last descriptor.
void open_no_more_files() {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_DIRECTORY, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EMFILE),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(steps), steps};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

TEST(ReadProcesses, LeavesNoneOutForWantOfADescriptor) {
  EXPECT_EXIT(
      {
        open_no_more_files();
        try {
          read_processes();
        } catch (const std::runtime_error& error) {
          std::fputs(error.what(), stderr);
        }
        ::_exit(0);
      },
      testing::ExitedWithCode(0), "cannot be looked at: Too many open files");
}

TEST(Process, IsNotDeadWhereOnlyItsMainThreadHasEnded) {
  Process process;
  process.state = 'Z';
  process.threads = 2;
  EXPECT_FALSE(process.is_dead());
  process.threads = 1;
  EXPECT_TRUE(process.is_dead());
}

TEST(CommandOf, IsShownWithoutWhatSteersATerminalAndNoLongerThanAsked) {
  Child child({"/bin/bash", "-c", "exec -a $'a\\e[31m\\x7f\\tb' sleep 54"}, "/");
  pid_t pid = 0;
  for (int i = 0; i < 500 && pid == 0; ++i) {
    pause(std::chrono::milliseconds(10));
    for (const Process& each : read_processes()) {
      if (each.parent == ::getpid() && each.name == "sleep") pid = each.pid;
    }
  }
  EXPECT_EQ(command_of(pid, 60), "a[31m b 54");
  EXPECT_EQ(command_of(pid, 7), "a[31m b");
  EXPECT_EQ(command_of(pid, 8), "a[31m b") << "with no blank at its end";
}

}  // namespace
}  // namespace dtool::host
