// SPDX-License-Identifier: MIT
// A push to this machine that is broken off, or overtaken by another.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "ssh/wire/copy.h"
#include "ssh/wire/push.h"
#include "tests/unit/fake_remote.h"
#include "tests/unit/sync/push/local_push.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

/// This machine; what is to happen before the tree is put in its place happens then.
struct Disturbed : ssh::Remote, HandsOn {
  const std::vector<ssh::Host>& hosts() const override { return real->hosts(); }
  bool interrupted() const override { return real->interrupted(); }
  std::vector<ssh::HostResult> run(std::vector<ssh::Task> tasks, ssh::Events& events,
                                   const ssh::RunOptions& options) override {
    to = &events;
    return real->run(std::move(tasks), *this, options);
  }
  std::optional<ssh::NextTask> next_task(std::size_t host, const ssh::HostResult& result) override {
    auto next = to->next_task(host, result);
    if (!next || !next->task) return next;
    const auto& command = std::get<ssh::Command>(next->task->step);
    if (tests::frame_of(command.input).kind != host::Kind::place_request) return next;
    ++places;
    if (before_place) before_place();
    if (is_disturbed_once) before_place = {};
    return breaks_off ? std::nullopt : std::move(next);
  }

  std::unique_ptr<ssh::Remote> real = ssh::make_fleet({ssh::parse_host("local")}, {});
  std::function<void()> before_place;
  bool is_disturbed_once = true;
  bool breaks_off = false;
  int places = 0;
};

class FaultyPushTest : public LocalPushTest {
 protected:
  ssh::HostResult push_now(Foreign foreign = Foreign::refuse) {
    told_ = {};
    const Tree tree = read_tree(scratch_.path() / "tree", {});
    return push(remote_, tree, {{0, "~/code"}}, told_, Relay::no, foreign).at(0);
  }
  /// Stops before anything is put in its place.
  void break_off() {
    remote_.breaks_off = true;
    push_now();
    remote_.breaks_off = false;
  }

  Disturbed remote_;
};

TEST_F(FaultyPushTest, AnInterruptedPushLeavesTheOldTreeAndTheNextOneGoesOnFromThere) {
  scratch_.write("tree/a", "old");
  scratch_.write("tree/gone", "old");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("tree/a", "newer");
  scratch_.write("tree/big", std::string(2'000'000, 'x'));
  fs::remove(scratch_.path() / "tree/gone");
  break_off();
  EXPECT_EQ(scratch_.read("home/code/a"), "old");
  EXPECT_EQ(scratch_.read("home/code/gone"), "old");
  EXPECT_FALSE(fs::exists(scratch_.path() / "home/code/big"));
  EXPECT_OK(push_now());
  EXPECT_EQ(pushed().sent.files, 0U) << "all had come";
  EXPECT_EQ(there(), (Names{"a", "big"}));
  EXPECT_EQ(scratch_.read("home/code/a"), "newer");
}

TEST_F(FaultyPushTest, WhatLiesThereOfTheSameTreeIsNotReadAgain) {
  scratch_.write("tree/a", "one");
  for (int i = 0; i < 3; ++i) {
    break_off();
    EXPECT_NE(scratch_.read("home/code/.~dtool~coming/.~dtool~made_for"), "several\n") << i;
  }
  scratch_.write("tree/b");
  break_off();
  EXPECT_EQ(scratch_.read("home/code/.~dtool~coming/.~dtool~made_for"), "several\n");
}

TEST_F(FaultyPushTest, WhatLiesThereOfAnEarlierTreeIsSentAnew) {
  scratch_.write("tree/a", "one");
  scratch_.write("tree/b", "same");
  scratch_.write("tree/gone", "one");
  break_off();
  scratch_.write("tree/a", "two");
  fs::remove(scratch_.path() / "tree/gone");
  EXPECT_OK(push_now());
  EXPECT_EQ(pushed().sent.files, 1U);
  EXPECT_EQ(there(), (Names{"a", "b"}));
  EXPECT_EQ(scratch_.read("home/code/a"), "two");
}

TEST_F(FaultyPushTest, WhatLiesThereOfAnEarlierTreeIsKnownByItsContent) {
  scratch_.write("tree/a", "one");
  const auto time = fs::last_write_time(scratch_.path() / "tree/a");
  break_off();
  scratch_.write("tree/a", "two");
  fs::last_write_time(scratch_.path() / "tree/a", time);
  EXPECT_OK(push_now());
  EXPECT_EQ(scratch_.read("home/code/a"), "two");
}

TEST_F(FaultyPushTest, WhatLiesThereOfAnEarlierTreeGetsTheModeThatItHasNow) {
  scratch_.write("tree/a", "one");
  break_off();
  fs::permissions(scratch_.path() / "tree/a", fs::perms::owner_all);
  EXPECT_OK(push_now());
  EXPECT_EQ(pushed().sent.files, 0U);
  EXPECT_EQ(fs::status(scratch_.path() / "home/code/a").permissions(), fs::perms::owner_all);
}

TEST_F(FaultyPushTest, FilesAndFoldersThatChangedPlacesSinceAnInterruptedPush) {
  scratch_.write("tree/x/deep/file", "one");
  scratch_.write("tree/z", "one");
  break_off();
  fs::remove_all(scratch_.path() / "tree");
  scratch_.write("tree/x", "now a file");
  scratch_.write("tree/z/deep/file", "one");
  EXPECT_OK(push_now());
  EXPECT_EQ(there(), (Names{"x", "z/deep/file"}));
}

TEST_F(FaultyPushTest, WhatCameBeforeThePowerFailedIsReadBeforeItIsTaken) {
  scratch_.write("tree/a", "one");
  scratch_.write("tree/b", "two");
  break_off();
  const fs::path aside = scratch_.path() / "home/code" / ".~dtool~coming";
  scratch_.write("home/code/.~dtool~coming/.~dtool~made_for", "another boot");
  const auto time = fs::last_write_time(aside / "a");
  scratch_.write("home/code/.~dtool~coming/a", std::string(3, '\0'));
  fs::last_write_time(aside / "a", time);
  EXPECT_OK(push_now());
  EXPECT_EQ(pushed().sent.files, 1U);
  EXPECT_EQ(scratch_.read("home/code/a"), "one");
  EXPECT_EQ(scratch_.read("home/code/b"), "two");
}

TEST_F(FaultyPushTest, AGuessThatFitsLeavesNothingOfAnEarlierPush) {
  scratch_.write("tree/a", "one");
  break_off();
  way_ = Way::package;
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(there(), Names{"a"});
}

// Another host may have got it as it was.
TEST_F(FaultyPushTest, AFileThatChangesWhileItIsSentIsNamed) {
  for (const Way way : {Way::parcels, Way::package}) {
    way_ = way;
    scratch_.write("tree/model.py", "version 1");
    scratch_.write("tree/other");
    Elsewhere elsewhere;
    ssh::Remote& remote = way == Way::parcels ? *elsewhere.real : elsewhere;
    const Tree tree = read_tree(scratch_.path() / "tree", {});
    scratch_.write("tree/model.py", "version 2, longer");
    const auto result = push(remote, tree, {{0, "~/code"}}, told_).at(0);
    EXPECT_NE(result.error.find("model.py changed while it was being sent"), std::string::npos)
        << result.error;
    EXPECT_NE(result.hint, "");
    EXPECT_OK(push_to("~/code"));
    EXPECT_EQ(scratch_.read("home/code/model.py"), "version 2, longer");
  }
}

TEST_F(FaultyPushTest, WhatAnotherDtoolBeganToSendMeanwhileIsNotMixedWithThis) {
  scratch_.write("tree/a", "old");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("tree/a", "newer");
  remote_.before_place = [this] {
    fs::path lock = manifest();
    std::ofstream(lock.replace_extension(".lock")) << "another\n";
  };
  const auto result = push_now();
  EXPECT_NE(result.error.find("another dtool is sending another tree there"), std::string::npos)
      << result.error;
  EXPECT_NE(result.hint.find("--code_path"), std::string::npos) << result.hint;
  EXPECT_EQ(scratch_.read("home/code/a"), "old");
  EXPECT_OK(push_now());
  EXPECT_EQ(scratch_.read("home/code/a"), "newer");
}

TEST_F(FaultyPushTest, WhatAnotherDtoolHasSentMeanwhileIsThere) {
  scratch_.write("tree/a");
  remote_.before_place = [this] {
    Told told;
    const Tree tree = read_tree(scratch_.path() / "tree", {});
    const auto another = ssh::make_fleet({ssh::parse_host("local")}, {});
    EXPECT_OK(push(*another, tree, {{0, "~/code"}}, told).at(0));
  };
  EXPECT_OK(push_now());
  EXPECT_EQ(there(), Names{"a"});
}

TEST_F(FaultyPushTest, WhatIsPutThereMeanwhileIsNotReplaced) {
  scratch_.write("tree/a", "sent");
  remote_.before_place = [this] { scratch_.write("home/code/a", "by hand"); };
  EXPECT_EQ(push_now().error,
            "a file in ~/code is not as dtool sent it and differs from the code tree: a");
  EXPECT_EQ(scratch_.read("home/code/a"), "by hand");
  EXPECT_OK(push_now(Foreign::overwrite));
  EXPECT_EQ(scratch_.read("home/code/a"), "sent");
}

TEST_F(FaultyPushTest, WhatIsSpoiltOrGoneAsideComesAgain) {
  scratch_.write("tree/a", "sent");
  scratch_.write("tree/b", "sent");
  const fs::path aside = scratch_.path() / "home/code" / ".~dtool~coming";
  remote_.before_place = [&] {
    scratch_.write("home/code/.~dtool~coming/a", "other bytes");
    fs::remove(aside / "b");
  };
  EXPECT_OK(push_now());
  EXPECT_EQ(scratch_.read("home/code/a"), "sent");
  EXPECT_EQ(scratch_.read("home/code/b"), "sent");
  EXPECT_EQ(remote_.places, 2);
}

TEST_F(FaultyPushTest, AListingThatIsGoneOrAnothersComesAgain) {
  scratch_.write("tree/a", "sent");
  remote_.before_place = [&] {
    scratch_.write("home/code/.~dtool~coming/.~dtool~listing", "another");
  };
  EXPECT_OK(push_now());
  EXPECT_EQ(scratch_.read("home/code/a"), "sent");
  EXPECT_EQ(remote_.places, 2);
}

TEST_F(FaultyPushTest, AFolderThatOthersCouldWriteIntoIsNotUsed) {
  scratch_.write("tree/a", "sent");
  const fs::path aside = scratch_.path() / "home/code" / ".~dtool~coming";
  remote_.before_place = [&] { fs::permissions(aside, fs::perms::all); };
  EXPECT_NE(push_now().error.find("is not a folder that dtool made for"), std::string::npos);
  EXPECT_FALSE(fs::exists(scratch_.path() / "home/code/a"));
  EXPECT_NE(push_now().error.find("is not a folder that dtool made for"), std::string::npos);
}

TEST_F(FaultyPushTest, WhatLacksForEverIsAnErrorInTheEnd) {
  scratch_.write("tree/a", "sent");
  remote_.is_disturbed_once = false;
  remote_.before_place = [this] {
    fs::remove(scratch_.path() / "home/code" / ".~dtool~coming" / "a");
  };
  const auto result = push_now();
  EXPECT_EQ(result.error, "1 of 1 files in ~/code are not as they were sent");
  EXPECT_NE(result.hint.find("does something else write there?"), std::string::npos);
  EXPECT_EQ(remote_.places, 4);
}

}  // namespace
}  // namespace dtool::tree_sync
