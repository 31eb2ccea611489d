// SPDX-License-Identifier: MIT
// What a trace tells of messages, and what it keeps to itself.
#include "ssh/trace.h"

#include <gtest/gtest.h>

#include "ssh/remote.h"
#include "ssh/wire/check.h"
#include "ssh/wire/run.h"
#include "ssh/wire/tree.h"
#include "tests/unit/fake_remote.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

host::Frame frame_of(const auto& message) {
  host::FrameReader reader;
  reader.add(host::to_frame(message));
  return reader.next().value();
}

TEST(Trace, TellsAMessagesNameAndFields) {
  EXPECT_EQ(describe(frame_of(host::KillRequest{"x_1", {"a", "b"}, {}, 5000})),
            R"(KillRequest("x_1", ["a", "b"], [], 5000))");
  EXPECT_EQ(describe(frame_of(host::LogEnd{"exited", 3})), R"(LogEnd("exited", 3))");
  EXPECT_EQ(describe(frame_of(host::StillHere{})), "StillHere()");
}

TEST(Trace, KnowsEveryKindOfMessage) {
  for (int kind = 0; kind < 256; ++kind) {
    const host::Frame frame{static_cast<host::Kind>(kind), "no message, whichever it is"};
    if (host::longest_body(frame.kind) == 0) continue;
    if (frame.kind == host::Kind::package_bytes) continue;  // bytes as they are, whichever
    EXPECT_EQ(describe(frame), "a message of kind " + std::to_string(kind) + ", 27 bytes");
    // A body of zeros is a message of each: empty texts and lists, and nothing optional.
    for (std::size_t size = 0; size < 2000; ++size) {
      const std::string said = describe({frame.kind, std::string(size, '\0')});
      if (!said.starts_with("a message of kind")) break;
      ASSERT_LT(size, 1999U) << "kind " << kind << " is not described";
    }
  }
}

TEST(Trace, KeepsFilesScriptsAndTokensToItself) {
  const std::string token = "0123456789abcdef0123456789abcdef";
  host::StartRequest start;
  start.files = {{"token", token + "\n"}, {"script", "export PASSWORD=secret\n"}};
  start.begin.text = "export PASSWORD=secret";
  const std::string said = describe(frame_of(start));
  EXPECT_EQ(said.find("secret"), said.npos) << said;
  EXPECT_EQ(said.find(token), said.npos) << said;
  EXPECT_NE(said.find("(\"script\", <23 bytes>)"), said.npos) << said;
  host::CheckRequest check;
  check.environment.text = "export PASSWORD=secret";
  check.experiment.text = "password = 'secret'";
  EXPECT_EQ(describe(frame_of(check)).find("secret"), said.npos);
  const std::string listen = describe(frame_of(host::ListenRequest{"10.0.0.1", 1, token, 2, 3}));
  EXPECT_EQ(listen, R"(ListenRequest("10.0.0.1", 1, <32 bytes>, 2, 3))");
  EXPECT_EQ(describe(frame_of(host::LogBytes{"secret"})), "LogBytes(<6 bytes>)");
}

TEST(Trace, KeepsKeysOfPackagesToItselfWhateverTheirLength) {
  const std::string key(64, 'a');
  const std::string secret(32, 'b');
  host::ParcelRequest request;
  request.relay = host::RelayPart{
      {key}, {secret}, host::RelayPart::Parent{"10.0.0.1", 1, {secret}, 5, std::string(64, 'c')}};
  const std::string said = describe(frame_of(request));
  EXPECT_EQ(said.find("aaaa"), said.npos) << said;
  EXPECT_EQ(said.find("bbbb"), said.npos) << said;
  EXPECT_NE(said.find("(<64 bytes>, <32 bytes>, (\"10.0.0.1\", 1, <32 bytes>, 5, "), said.npos)
      << said;
}

TEST(Trace, KeepsWhatAProgramWroteToItself) {
  host::StatusReply reply;
  host::StatusAnswer& answer = reply.machines.emplace_back();
  answer.said = answer.last_line = answer.metrics = answer.validation = {"PASSWORD=secret"};
  answer.lines = {{"PASSWORD=secret"}};
  host::LogRequest request;
  request.before = {"PASSWORD=secret"};
  for (const std::string& said : {describe(frame_of(reply)), describe(frame_of(request))}) {
    EXPECT_EQ(said.find("secret"), said.npos) << said;
    EXPECT_NE(said.find("<15 bytes>"), said.npos) << said;
  }
}

TEST(Trace, WhatAHostSaysSteersNoTerminal) {
  const std::string said = describe(frame_of(host::Fault{"\x1b[2J"}));
  EXPECT_EQ(said, R"(Fault("\x1b[2J", ""))");
}

TEST(Trace, HasAFileForEachHostThatIsAsked) {
  const tests::TemporaryFolder folder;
  auto fake = std::make_unique<tests::FakeRemote>("h[1-3]");
  fake->answers[0] = tests::answered(host::to_frame(host::KillReply{}));
  fake->answers[1] = tests::failed(Failure::unreachable, "refused");
  const auto remote = traced(std::move(fake), folder.path() / "traces");
  Events nobody;
  remote->run({{0, ask_host(host::KillRequest{"x_1", {}, {}, 5})}, {1, Command{"true", "in"}}},
              nobody, {});
  const std::string first = tests::read_text(folder.path() / "traces/0000_h1.trace");
  EXPECT_NE(first.find("asked KillRequest(\"x_1\", [], [], 5)"), first.npos) << first;
  EXPECT_NE(first.find("came  KillReply("), first.npos) << first;
  EXPECT_NE(first.find("ended exit code 0"), first.npos) << first;
  const std::string second = tests::read_text(folder.path() / "traces/0001_h2.trace");
  EXPECT_NE(second.find("asked true with input of 2 bytes"), second.npos) << second;
  EXPECT_NE(second.find("ended unreachable: refused"), second.npos) << second;
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "traces/0002_h3.trace"));
}

TEST(Trace, AFolderThatCannotBeIsNamed) {
  const tests::TemporaryFolder folder;
  const auto file = folder.write("file", "");
  EXPECT_THROW(traced(std::make_unique<tests::FakeRemote>("h1"), file), std::invalid_argument);
}

}  // namespace
}  // namespace dtool::ssh
