// SPDX-License-Identifier: MIT
// What holds for everything that is sent, whether it is code, the trainer, an environment's
// packages or data: to this machine, with real files.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "ssh/fanout/fleet.h"
#include "ssh/wire/copy.h"
#include "ssh/wire/push.h"
#include "sync/copy/copy_list.h"
#include "sync/copy/copying.h"
#include "tests/unit/fake_remote.h"
#include "tests/unit/sync/push/local_push.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;

struct Kind {
  std::string_view name;
  std::string folder;
  Foreign foreign = Foreign::refuse;
};

/// This machine. It may be lost when all that was sent has come, before it is asked what comes
/// next.
struct Losing : Elsewhere, HandsOn {
  std::vector<ssh::HostResult> run(std::vector<ssh::Task> tasks, ssh::Events& events,
                                   const ssh::RunOptions& options) override {
    is_lost = is_lost || is_after_parcels(tasks.front());
    if (is_lost) return std::vector<ssh::HostResult>(tasks.size(), lost());
    to = &events;
    return real->run(std::move(tasks), *this, options);
  }
  void on_result(std::size_t host, const ssh::HostResult& result) override {
    to->on_result(host, is_lost ? lost() : result);
  }
  std::optional<ssh::NextTask> next_task(std::size_t host, const ssh::HostResult& result) override {
    auto next = to->next_task(host, result);
    is_lost = is_lost || (next && next->task && is_after_parcels(*next->task));
    return is_lost ? std::nullopt : std::move(next);
  }
  bool is_after_parcels(const ssh::Task& task) {
    const auto kind = tests::frame_of(std::get<ssh::Command>(task.step).input).kind;
    has_sent = has_sent || kind == host::Kind::parcel_request;
    return is_to_be_lost && has_sent && kind != host::Kind::parcel_request;
  }
  static ssh::HostResult lost() {
    ssh::HostResult result;
    result.failure = ssh::Failure::connection_lost;
    result.error = "the connection was lost";
    return result;
  }

  bool is_to_be_lost = false;
  bool is_lost = false;
  bool has_sent = false;
};

class EveryKind : public testing::TestWithParam<Kind> {
 protected:
  EveryKind() {
    fs::create_directory(scratch_.path() / "home");
    scratch_.write("tree/model.py", "version 1");
    scratch_.write("tree/sub/large", std::string(300'000, 'x') + "end");
  }

  struct Sending {
    ssh::HostResult result = {};
    std::size_t files = 0;  ///< that were sent
  };
  bool is_data() const { return GetParam().name == "data"; }
  Sending send(const std::function<void()>& once_listed = [] {}) {
    return is_data() ? send_data(once_listed) : send_tree(once_listed);
  }
  Sending send_data(const std::function<void()>& once_listed) {
    CopyList list = list_sources({(scratch_.path() / "tree").native() + "/"}, {});
    once_listed();
    ssh::Events nobody;
    Copying copying(remote_, list, GetParam().folder, "here", nobody, GetParam().foreign);
    copying.ask();
    const CopyHost asked = copying.hosts().at(0);
    if (!asked.reply.owner.empty()) copying.take_over(0, asked.reply.owner);
    if (asked.result.ok() && asked.reply.blocked.empty()) copying.send();
    Sending sent{copying.hosts().at(0).result, asked.entries};
    if (!asked.reply.blocked.empty()) {
      sent.result.exit_code = 1;
      sent.result.error = asked.reply.blocked.front();
    }
    return sent;
  }
  Sending send_tree(const std::function<void()>& once_listed) {
    const Tree tree = read_tree(scratch_.path() / "tree", {});
    Told told;
    const auto pushing = make_push(remote_.hosts(), tree, {{0, GetParam().folder}}, told, {},
                                   Relay::where_it_pays, GetParam().foreign);
    once_listed();
    remote_.run({pushing->first_task(0)}, *pushing, {});
    const auto result = pushing->finish(remote_);
    return {result.at(0), pushing->pushed(0).sent.files};
  }

  fs::path there(const std::string& name) const {
    return scratch_.path() / "home" / GetParam().folder.substr(2) / name;
  }
  std::string read(const std::string& name) const {
    return scratch_.read(there(name).lexically_relative(scratch_.path()));
  }

  tests::TemporaryFolder scratch_;
  tests::TemporaryVariable home_{"HOME", scratch_.path() / "home"};
  Losing remote_;
};

const std::string kHash(64, 'a');

INSTANTIATE_TEST_SUITE_P(
    Sent, EveryKind,
    testing::Values(Kind{"code", "~/project"},
                    Kind{"trainer", "~/.dtool/trainers/" + kHash, Foreign::overwrite},
                    Kind{"environment", "~/.dtool/environments/" + kHash, Foreign::overwrite},
                    Kind{"data", "~/sets/digits"}),
    [](const auto& kind) { return std::string(kind.param.name); });

TEST_P(EveryKind, IsThereAndIsNotSentAgain) {
  EXPECT_OK(send().result);
  EXPECT_EQ(read("model.py"), "version 1");
  EXPECT_EQ(read("sub/large"), std::string(300'000, 'x') + "end");
  const Sending again = send();
  EXPECT_OK(again.result);
  EXPECT_EQ(again.files, 0U);
}

TEST_P(EveryKind, GoesOnWhereItWasInterrupted) {
  // What goes along with a question is not interrupted: it comes whole, or not at all.
  scratch_.write("tree/random", std::string(9'000'000, 'r'));
  remote_.is_to_be_lost = true;
  EXPECT_FALSE(send().result.ok());
  EXPECT_FALSE(!is_data() && fs::exists(there("model.py"))) << "half of a tree is in its place";
  remote_.is_to_be_lost = remote_.is_lost = false;
  const Sending again = send();
  EXPECT_OK(again.result);
  EXPECT_EQ(again.files, 0U) << "all had come";
  EXPECT_EQ(read("model.py"), "version 1");
  for (const auto& each : fs::recursive_directory_iterator(scratch_.path() / "home"))
    EXPECT_FALSE(each.path().filename().native().starts_with(".~dtool~")) << each.path();
}

TEST_P(EveryKind, AFileThatChangesWhileItIsSentIsNamed) {
  const Sending sent = send([this] { scratch_.write("tree/model.py", "version 2, longer"); });
  EXPECT_NE(sent.result.error.find("model.py changed while it was being sent"), std::string::npos)
      << sent.result.error;
  EXPECT_OK(send().result);
  EXPECT_EQ(read("model.py"), "version 2, longer");
}

TEST_P(EveryKind, AFileWhoseContentAloneChangesAfterItWasListedIsNamed) {
  if (is_data()) return;  // its content is not read before it is sent
  const fs::path file = scratch_.path() / "tree/model.py";
  const auto time = fs::last_write_time(file);
  const Sending sent = send([&] {
    scratch_.write("tree/model.py", "version 2");
    fs::last_write_time(file, time);
  });
  EXPECT_NE(sent.result.error.find("model.py changed while it was being sent"), std::string::npos)
      << sent.result.error;
  EXPECT_FALSE(fs::exists(there("model.py")));
}

TEST_P(EveryKind, AFileThatIsSwappedForALinkToAPrivateOneIsNotSent) {
  scratch_.write("private", "version 1");
  const Sending sent = send([this] {
    fs::remove(scratch_.path() / "tree/model.py");
    fs::create_symlink(scratch_.path() / "private", scratch_.path() / "tree/model.py");
  });
  EXPECT_FALSE(sent.result.ok());
  EXPECT_FALSE(fs::exists(there("model.py")));
}

TEST_P(EveryKind, AnEditHereThatKeepsSizeAndTimeIsSent) {
  EXPECT_OK(send().result);
  const fs::path file = scratch_.path() / "tree/sub/large";
  const auto time = fs::last_write_time(file);
  scratch_.write("tree/sub/large", std::string(300'000, 'y') + "end");
  fs::last_write_time(file, time);
  if (is_data()) fs::last_write_time(file, time + std::chrono::seconds(1));  // it goes by the time
  EXPECT_OK(send().result);
  EXPECT_EQ(read("sub/large"), std::string(300'000, 'y') + "end");
}

TEST_P(EveryKind, WhatWasEditedThereIsNotTakenForWhatWasSent) {
  EXPECT_OK(send().result);
  scratch_.write(there("model.py").lexically_relative(scratch_.path()), "by hand, longer");
  const Sending sent = send();
  if (GetParam().foreign == Foreign::refuse) {
    EXPECT_NE(sent.result.error.find("model.py"), std::string::npos) << sent.result.error;
    EXPECT_EQ(read("model.py"), "by hand, longer");
  } else {
    EXPECT_OK(sent.result);
    EXPECT_EQ(read("model.py"), "version 1");
  }
}

TEST_P(EveryKind, AFolderThatStandsWhereAFileIsToBeStays) {
  fs::create_directories(there("model.py/theirs"));
  EXPECT_FALSE(send().result.ok());
  EXPECT_TRUE(fs::exists(there("model.py/theirs")));
}

TEST_P(EveryKind, ALinkThatStandsWhereAFolderIsToBeIsNotFollowed) {
  fs::create_directories(there(""));
  fs::create_directory(scratch_.path() / "home/elsewhere");
  fs::create_directory_symlink(scratch_.path() / "home/elsewhere", there("sub"));
  EXPECT_FALSE(send().result.ok());
  EXPECT_TRUE(fs::is_empty(scratch_.path() / "home/elsewhere"));
}

TEST_P(EveryKind, BitsThatActForAFilesOwnerStayHere) {
  using fs::perms;
  fs::permissions(scratch_.path() / "tree/model.py", perms::owner_all | perms::set_uid);
  EXPECT_OK(send().result);
  EXPECT_EQ(fs::status(there("model.py")).permissions(), perms::owner_all);
}

}  // namespace
}  // namespace dtool::tree_sync
