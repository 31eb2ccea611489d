// SPDX-License-Identifier: MIT
#include "ssh/program/master_protocol.h"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <string>

namespace dtool::ssh::master_protocol {
namespace {

using namespace std::string_literals;

TEST(MasterProtocol, HelloIsAsOpensshSaysIt) {
  EXPECT_EQ(hello(), "\0\0\0\x08\0\0\0\x01\0\0\0\x04"s);
}

TEST(MasterProtocol, TakesPacketsAsTheyBecomeWhole) {
  std::string bytes = "\0\0\0\x0c\x80\0\0\x04\0\0\0\x02\0\0\0"s;
  EXPECT_FALSE(take_packet(bytes));
  bytes += "\xff\0\0\0\x0f\x80\0\0\x03\0\0\0\0\0\0\0\x03no!"s;
  const auto exit = take_packet(bytes);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->kind, MuxKind::exit_message);
  EXPECT_EQ(exit->second, 255u);
  const auto failure = take_packet(bytes);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->text, "no!");
  EXPECT_FALSE(take_packet(bytes));
}

TEST(MasterProtocol, WhatIsNoPacketIsRefused) {
  std::string none = "GET / HTTP/1.1\r\n";
  EXPECT_THROW(take_packet(none), std::invalid_argument);
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = "\0\0\0"s;
    for (int n = 0; n < 40; ++n) bytes += static_cast<char>(random());
    try {
      while (take_packet(bytes)) {
      }
    } catch (const std::invalid_argument&) {
    }
  }
}

}  // namespace
}  // namespace dtool::ssh::master_protocol
