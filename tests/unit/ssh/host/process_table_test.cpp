// SPDX-License-Identifier: MIT
// Processes are read as the kernel shows them, whatever they call themselves.
#include "ssh/host/process_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

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

TEST(Process, IsNotDeadWhereOnlyItsMainThreadHasEnded) {
  Process process;
  process.state = 'Z';
  process.threads = 2;
  EXPECT_FALSE(process.is_dead());
  process.threads = 1;
  EXPECT_TRUE(process.is_dead());
}

}  // namespace
}  // namespace dtool::host
