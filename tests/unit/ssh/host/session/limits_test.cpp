// SPDX-License-Identifier: MIT
// The limit of open files that a session has, and the one that its children get.
#include "ssh/host/session/job.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>

namespace dtool::host {
namespace {

constexpr rlim_t kBefore = 100;

rlimit limit() {
  rlimit found{};
  ::getrlimit(RLIMIT_NOFILE, &found);
  return found;
}

/// Whether that holds in a process of its own, whose limit is low.
bool holds(bool (*check)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    rlimit low = limit();
    low.rlim_cur = kBefore;
    ::setrlimit(RLIMIT_NOFILE, &low);
    ::_exit(check() ? 0 : 1);
  }
  return wait_for_child(child) == 0;
}

TEST(OpenFiles, MayBeAsManyAsTheSystemAllowsAndAsBeforeInChildren) {
  EXPECT_TRUE(holds([] {
    raise_open_files();
    const bool is_raised = limit().rlim_cur == limit().rlim_max;
    raise_open_files();
    restore_open_files();
    return is_raised && limit().rlim_cur == kBefore;
  }));
}

TEST(OpenFiles, OfAProgramThatASessionStartsAreLimitedAsBefore) {
  EXPECT_TRUE(holds([] {
    raise_open_files();
    const std::string test = "[ \"$(ulimit -n)\" = " + std::to_string(kBefore) + " ]";
    return wait_for_child(start_program({"sh", "-c", test}, "", Input::nothing)) == 0;
  }));
}

TEST(OpenFiles, StayAsTheyAreWhereNothingWasRaised) {
  EXPECT_TRUE(holds([] {
    restore_open_files();
    return limit().rlim_cur == kBefore;
  }));
}

}  // namespace
}  // namespace dtool::host
