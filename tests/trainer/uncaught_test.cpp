// SPDX-License-Identifier: MIT
// Each test ends a process of its own.
#include "trainer/worker.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

using namespace dtool::trainer;

namespace {

[[noreturn]] void say_and_exit(const std::string& reason) {
  std::fprintf(stderr, "<%s>", reason.c_str());
  std::_Exit(3);
}

void let_a_thread_throw() {
  std::thread([] { throw std::runtime_error("rank 1 is gone\nand its stack trace"); }).join();
}

}  // namespace

TEST(UncaughtExceptions, EndTheProcessAsToldWithTheirFirstLine) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const UncaughtExceptions guard(say_and_exit);
        let_a_thread_throw();
      },
      testing::ExitedWithCode(3), "^<rank 1 is gone>$");
}

TEST(UncaughtExceptions, AreNobodysConcernAfterwards) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        { const UncaughtExceptions guard(say_and_exit); }
        let_a_thread_throw();
      },
      testing::KilledBySignal(SIGABRT), "rank 1 is gone");
}
