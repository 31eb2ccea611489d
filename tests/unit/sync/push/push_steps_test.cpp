// SPDX-License-Identifier: MIT
// A host's side of a push, on this machine: what dtool-host does where a whole push does not lead.
#include "sync/push/push_steps.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "ssh/fanout/fleet.h"
#include "ssh/wire/push.h"
#include "sync/contents.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;

struct RemoteTree {
  std::string folder;
  std::string fingerprint;
};

struct InPush {
  std::string name;
  std::int64_t host = 0;
};

ssh::Command ask_command(const host::TreeRoot& root, const RemoteTree& there, const InPush& push,
                         const Guess* guess = nullptr) {
  host::TreeRequest request;
  request.folder = there.folder;
  request.tree = there.fingerprint;
  request.root = root;
  request.push = push.name;
  request.host = push.host;
  request.aside = host::kComing;
  return ask_command(std::move(request), guess);
}

class PushStepsTest : public ::testing::Test {
 protected:
  PushStepsTest() {
    ::setenv("HOME", scratch_.path().c_str(), 1);
    scratch_.write("tree/a");
    tree_ = read_tree(scratch_.path() / "tree", {});
  }

  ssh::HostResult run(ssh::Command command) {
    ssh::Events nobody;
    return remote_->run({{0, std::move(command)}}, nobody, {}).at(0);
  }
  /// With the question.
  ssh::HostResult send(const Guess& guess, const RemoteTree& there) {
    return run(ask_command(root_of(tree_), there, {}, &guess));
  }

  tests::TemporaryFolder scratch_;
  Tree tree_;
  std::unique_ptr<ssh::Remote> remote_ = ssh::make_fleet({ssh::parse_host("local")}, {});
};

/// What a host answered.
host::TreeReply reply_of(ssh::HostResult result) {
  const auto reply = ssh::reply_in<host::TreeReply>(result);
  EXPECT_TRUE(reply) << result.error << result.err;
  return reply.value_or(host::TreeReply{});
}

bool is_unknown(const host::TreeReply& reply) {
  return !reply.is_whole && !reply.is_empty && reply.basis.empty() && !reply.placed &&
         !reply.holder && !reply.is_same_folder;
}

TEST_F(PushStepsTest, OfThousandsOfFilesOneThatWasTouchedIsSeen) {
  for (int i = 0; i < 2100; ++i) scratch_.write(fmt::format("many/-{} '\n\"/(", i));
  const Tree tree = read_tree(scratch_.path() / "many", {});
  const Listing listing = list_tree(tree);
  const RemoteTree there{"~/there", listing.fingerprint};
  const auto ask = [&] { return reply_of(run(ask_command(root_of(tree), there, {}))); };
  EXPECT_TRUE(ask().is_empty);
  const Guess guess(tree, listing, {});
  EXPECT_TRUE(reply_of(send(guess, there)).placed.value().is_whole);
  EXPECT_TRUE(ask().is_whole);
  // That changes its ctime, and nothing else.
  const fs::path file = scratch_.path() / "there" / tree.files.at(1234);
  fs::permissions(file, fs::status(file).permissions());
  EXPECT_TRUE(is_unknown(ask()));
}

/// A host that has the tree, and the tree with another content.
class GuessedTest : public PushStepsTest {
 protected:
  GuessedTest() {
    const RemoteTree there{"~/code", before_.fingerprint};
    send(Guess(tree_, before_, {}), there);
    scratch_.write("tree/a", "changed");
    tree_ = read_tree(scratch_.path() / "tree", {});
  }

  /// Asks with a guess that leads from a tree of that fingerprint.
  host::TreeReply ask(const std::string& basis) {
    const Listing now = list_tree(tree_);
    Guess guess(tree_, now, before_.entries);
    guess.basis = basis;
    return reply_of(run(ask_command(root_of(tree_), {"~/code", now.fingerprint}, {}, &guess)));
  }

  const Listing before_ = list_tree(tree_);
};

TEST_F(GuessedTest, AGuessIsUnpackedWithTheQuestionWhereItLeadsFromWhatIsThere) {
  EXPECT_TRUE(ask(before_.fingerprint).placed.value().is_whole);
  EXPECT_EQ(scratch_.read("code/a"), "changed");
  EXPECT_TRUE(ask(before_.fingerprint).is_whole);
  scratch_.write("code/a", "by hand");
  EXPECT_TRUE(is_unknown(ask(before_.fingerprint))) << "an edit is seen";
}

TEST_F(GuessedTest, APackageThatLeadsFromNothingIsUnpackedWhereNothingIsAndNowhereElse) {
  const Listing now = list_tree(tree_);
  const Guess guess(tree_, now, {});
  const auto ask_about = [&](const std::string& folder) {
    return reply_of(run(ask_command(root_of(tree_), {folder, now.fingerprint}, {}, &guess)));
  };
  EXPECT_TRUE(ask_about("~/new").placed.value().is_whole);
  EXPECT_EQ(scratch_.read("new/a"), "changed");
  EXPECT_EQ(ask_about("~/code").basis, before_.fingerprint);
  EXPECT_EQ(scratch_.read("code/a"), "content\n") << "as it was";
  scratch_.write("theirs/a", "by hand");
  EXPECT_TRUE(is_unknown(ask_about("~/theirs")));
  EXPECT_EQ(scratch_.read("theirs/a"), "by hand");
}

TEST_F(GuessedTest, StampsOfFilesWhoseNamesAreOddStayTrue) {
  for (const char* name : {"x\\y", "end\\", "b\nf 644 1 2 3 .", "]$(false)", "a b ./a"})
    scratch_.write(std::string("odd/") + name);
  const auto ask_about = [&](const std::string& basis, const std::vector<Entry>& before) {
    tree_ = read_tree(scratch_.path() / "odd", {});
    const Listing now = list_tree(tree_);
    Guess guess(tree_, now, before);
    guess.basis = basis;
    const RemoteTree there{"~/there", now.fingerprint};
    const auto reply = reply_of(run(ask_command(root_of(tree_), there, {}, &guess)));
    EXPECT_TRUE(reply.placed && reply.placed->is_whole);
    EXPECT_TRUE(reply_of(run(ask_command(root_of(tree_), there, {}))).is_whole);
  };
  ask_about("", {});
  for (const char* name : {"x\\y", "b\nf 644 1 2 3 .", "]$(false)", "a b ./a"}) {
    const Listing before = list_tree(read_tree(scratch_.path() / "odd", {}));
    scratch_.write(std::string("odd/") + name, "changed");
    ask_about(before.fingerprint, before.entries);
  }
}

TEST_F(GuessedTest, WhereFilesOnlyGoThePackageDoesIt) {
  scratch_.write("tree/a", "content\n");
  scratch_.write("tree/b");
  tree_ = read_tree(scratch_.path() / "tree", {});
  const Listing both = list_tree(tree_);
  const RemoteTree there{"~/both", both.fingerprint};
  send(Guess(tree_, both, {}), there);
  fs::remove(scratch_.path() / "tree/b");
  tree_ = read_tree(scratch_.path() / "tree", {});
  const Listing one = list_tree(tree_);
  const RemoteTree there_of_one{"~/both", one.fingerprint};
  EXPECT_EQ(reply_of(run(ask_command(root_of(tree_), there_of_one, {}))).basis, both.fingerprint);
  Guess guess(tree_, one, both.entries);
  guess.basis = both.fingerprint;
  const auto placed = reply_of(send(guess, there_of_one)).placed;
  EXPECT_TRUE(placed.value().is_whole);
  EXPECT_EQ(placed->removed, 1);
  EXPECT_TRUE(reply_of(send(guess, there_of_one)).is_whole) << "as another launcher would find it";
}

TEST_F(GuessedTest, TheTreesOwnFolderStaysAsItIsThoughAnotherLauncherSentIt) {
  scratch_.write("tree/b");
  tree_ = read_tree(scratch_.path() / "tree", {});
  const Listing before = list_tree(tree_);
  const std::string folder = scratch_.path() / "home of both";
  const RemoteTree there{folder, before.fingerprint};
  send(Guess(tree_, before, {}), there);
  // Now it is sent from there, without one of its files.
  tree_ = read_tree(folder, {"b"});
  const Listing now = list_tree(tree_);
  Guess guess(tree_, now, before.entries);
  guess.basis = before.fingerprint;
  const RemoteTree again{folder, now.fingerprint};
  EXPECT_TRUE(reply_of(run(ask_command(root_of(tree_), again, {}, &guess))).is_same_folder);
  EXPECT_TRUE(fs::exists(fs::path(folder) / "b"));
}

TEST_F(PushStepsTest, OneOfTheHostsThatShareAFolderHasItInHand) {
  const Listing listing = list_tree(tree_);
  const RemoteTree there{"~/shared", listing.fingerprint};
  const auto ask = [&](const InPush& push) {
    return reply_of(run(ask_command(root_of(tree_), there, push)));
  };
  EXPECT_TRUE(ask({"old.0", 7}).is_empty);
  EXPECT_TRUE(ask({"new.0", 1}).is_empty) << "what an old push left is in nobody's way";
  EXPECT_EQ(ask({"new.0", 2}).holder, 1);
  EXPECT_TRUE(ask({"new.0", 1}).is_empty) << "it may ask again";
  EXPECT_TRUE(ask({"new.1", 2}).is_empty);
  send(Guess(tree_, listing, {}), there);
  EXPECT_TRUE(fs::exists(scratch_.path() / "shared/a"));
  for (const auto& entry : fs::directory_iterator(scratch_.path() / "shared"))
    EXPECT_FALSE(entry.path().filename().native().starts_with(".~dtool~")) << entry.path();
}

TEST_F(GuessedTest, AGuessThatLeadsFromAnotherTreeIsLeftAlone) {
  EXPECT_EQ(ask(std::string(64, '0')).basis, before_.fingerprint);
  EXPECT_EQ(scratch_.read("code/a"), "content\n") << "as it was";
}

TEST_F(GuessedTest, WhatSomebodyEditedThereIsNotTakenForTheTreeThatWasGuessed) {
  scratch_.write("code/a", "by hand");
  EXPECT_TRUE(is_unknown(ask(before_.fingerprint)));
  EXPECT_EQ(scratch_.read("code/a"), "by hand");
}

TEST_F(GuessedTest, APackageForWhatIsThereNoLongerIsLeftAlone) {
  const Listing now = list_tree(tree_);
  Guess guess(tree_, now, before_.entries);
  guess.basis = before_.fingerprint;
  const RemoteTree there{"~/code", now.fingerprint};
  EXPECT_EQ(reply_of(run(ask_command(root_of(tree_), there, {}))).basis, before_.fingerprint);
  scratch_.write("code/a", "by hand");
  EXPECT_TRUE(is_unknown(reply_of(send(guess, there))));
  EXPECT_EQ(scratch_.read("code/a"), "by hand");
}

TEST_F(PushStepsTest, AFileWhoseFolderBecomesALinkAfterItWasListedIsNotPacked) {
  scratch_.write("tree/sub/b", "listed");
  const Tree tree = read_tree(scratch_.path() / "tree", {});
  const Listing listing = list_tree(tree);
  const Guess guess(tree, listing, {});
  fs::rename(scratch_.path() / "tree/sub", scratch_.path() / "private");
  fs::create_directory_symlink("../private", scratch_.path() / "tree/sub");
  const RemoteTree there{"~/code", listing.fingerprint};
  const ssh::HostResult result = send(guess, there);
  EXPECT_EQ(result.failure, ssh::Failure::local_program);
  EXPECT_TRUE(result.error.ends_with("/tree/sub/b changed while it was being sent"))
      << result.error;
}

TEST_F(PushStepsTest, AFileWhoseContentAloneChangesAfterItWasListedIsNotPacked) {
  const Listing listing = list_tree(tree_, read_contents(tree_));
  const Guess guess(tree_, listing, {});
  const fs::path file = scratch_.path() / "tree/a";
  const auto time = fs::last_write_time(file);
  scratch_.write("tree/a", "CONTENT\n");
  fs::last_write_time(file, time);
  const ssh::HostResult result = send(guess, {"~/code", listing.fingerprint});
  EXPECT_EQ(result.failure, ssh::Failure::local_program);
  EXPECT_FALSE(fs::exists(scratch_.path() / "code/a"));
}

TEST_F(PushStepsTest, AFileThatChangesAfterItWasListedIsNotPacked) {
  const Listing listing = list_tree(tree_);
  const Guess guess(tree_, listing, {});
  scratch_.write("tree/a", "longer than it was before");
  const RemoteTree there{"~/code", listing.fingerprint};
  const ssh::HostResult result = send(guess, there);
  EXPECT_EQ(result.failure, ssh::Failure::local_program);
  EXPECT_TRUE(result.error.ends_with("/tree/a changed while it was being sent")) << result.error;
  EXPECT_FALSE(fs::exists(scratch_.path() / "code/a"));
}

}  // namespace
}  // namespace dtool::tree_sync
