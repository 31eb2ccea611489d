// SPDX-License-Identifier: MIT
// What is said of an answer that does not come whole.
#include "ssh/remote.h"

#include <gtest/gtest.h>

#include <string>

#include "ssh/wire/copy.h"
#include "ssh/wire/tree.h"

namespace dtool::ssh {
namespace {

std::string fault_of(const std::string& out, int exit_code) {
  HostResult result;
  result.out = out;
  result.exit_code = exit_code;
  try {
    read_reply<host::ParcelReply>(result);
  } catch (const host::BadMessage& error) {
    return error.what();
  }
  return "";
}

TEST(ReadReply, NewsAreNoAnswer) {
  const std::string news = host::to_frame(host::TreeNews());
  EXPECT_EQ(fault_of(news + host::to_frame(host::ParcelReply()), 0), "");
  EXPECT_EQ(fault_of(news, 1), "the answer is not whole (exit code 1)");
}

TEST(ReadReply, WhoseProgramWasKilledIsToldSo) {
  EXPECT_EQ(fault_of(host::to_frame(host::TreeNews()), 137),
            "dtool-host was killed there by signal 9 as it answered");
}

}  // namespace
}  // namespace dtool::ssh
