// SPDX-License-Identifier: MIT
// A host's side of a push, on this machine: what dtool-host does where a whole push does not lead.
#include "sync/push_steps.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "ssh/fleet.h"
#include "ssh/host/messages/tree.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;

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

  tests::TemporaryFolder scratch_;
  Tree tree_;
  std::unique_ptr<ssh::Remote> remote_ = ssh::make_fleet({ssh::parse_host("local")}, {});
};

/// What a host answered.
host::TreeReply reply_in(ssh::HostResult result) {
  const auto reply = read_tree_reply(result);
  EXPECT_TRUE(reply) << result.error << result.err;
  return reply.value_or(host::TreeReply{});
}

bool is_unknown(const host::TreeReply& reply) {
  return !reply.is_whole && !reply.is_empty && reply.basis.empty() && !reply.unpacked &&
         !reply.holder && !reply.is_same_folder;
}

TEST_F(PushStepsTest, OfThousandsOfFilesOneThatWasTouchedIsSeen) {
  for (int i = 0; i < 2100; ++i) scratch_.write(fmt::format("many/-{} '\n\"/(", i));
  const Tree tree = read_tree(scratch_.path() / "many", {});
  const Listing listing = list_tree(tree);
  const RemoteTree there{"~/there", listing.fingerprint, listing.digest};
  const auto ask = [&] { return reply_in(run(ask_command(root_of(tree), there, {}))); };
  EXPECT_TRUE(ask().is_empty);
  const auto package = pack(tree, listing, {});
  EXPECT_TRUE(reply_in(run(unpack_command(package.value(), there))).unpacked.value().is_whole);
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
    const RemoteTree there{"~/code", before_.fingerprint, before_.digest};
    run(ask_command(root_of(tree_), there, {}));
    run(unpack_command(*pack(tree_, before_, {}), there));
    scratch_.write("tree/a", "changed");
    tree_ = read_tree(scratch_.path() / "tree", {});
  }

  /// Asks with a guess that leads from a tree of that fingerprint.
  host::TreeReply ask(const std::string& basis) {
    const Listing now = list_tree(tree_);
    auto guess = pack(tree_, now, before_.entries);
    guess->basis = basis;
    return reply_in(
        run(ask_command(root_of(tree_), {"~/code", now.fingerprint, now.digest}, {}, &*guess)));
  }

  const Listing before_ = list_tree(tree_);
};

TEST_F(GuessedTest, AGuessIsUnpackedWithTheQuestionWhereItLeadsFromWhatIsThere) {
  EXPECT_TRUE(ask(before_.fingerprint).unpacked.value().is_whole);
  EXPECT_EQ(scratch_.read("code/a"), "changed");
  EXPECT_TRUE(ask(before_.fingerprint).is_whole);
  scratch_.write("code/a", "by hand");
  EXPECT_TRUE(is_unknown(ask(before_.fingerprint))) << "an edit is seen";
}

TEST_F(GuessedTest, APackageThatLeadsFromNothingIsUnpackedWhereNothingIsAndNowhereElse) {
  const Listing now = list_tree(tree_);
  const auto guess = pack(tree_, now, {});
  const auto ask_about = [&](const std::string& folder) {
    return reply_in(
        run(ask_command(root_of(tree_), {folder, now.fingerprint, now.digest}, {}, &*guess)));
  };
  EXPECT_TRUE(ask_about("~/new").unpacked.value().is_whole);
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
    auto guess = pack(tree_, now, before);
    guess->basis = basis;
    const RemoteTree there{"~/there", now.fingerprint, now.digest};
    const auto reply = reply_in(run(ask_command(root_of(tree_), there, {}, &*guess)));
    EXPECT_TRUE(reply.unpacked && reply.unpacked->is_whole);
    EXPECT_TRUE(reply_in(run(ask_command(root_of(tree_), there, {}))).is_whole);
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
  const RemoteTree there{"~/both", both.fingerprint, both.digest};
  run(ask_command(root_of(tree_), there, {}));
  run(unpack_command(*pack(tree_, both, {}), there));
  fs::remove(scratch_.path() / "tree/b");
  tree_ = read_tree(scratch_.path() / "tree", {});
  const Listing one = list_tree(tree_);
  const RemoteTree there_of_one{"~/both", one.fingerprint, one.digest};
  EXPECT_EQ(reply_in(run(ask_command(root_of(tree_), there_of_one, {}))).basis, both.fingerprint);
  auto package = pack(tree_, one, both.entries);
  package->basis = both.fingerprint;
  const auto unpacked = reply_in(run(unpack_command(*package, there_of_one))).unpacked;
  EXPECT_TRUE(unpacked.value().is_whole) << unpacked->broken;
  EXPECT_EQ(unpacked->removed, 1);
  EXPECT_TRUE(reply_in(run(unpack_command(*package, there_of_one))).is_whole)
      << "as another launcher would find it";
}

TEST_F(GuessedTest, TheTreesOwnFolderStaysAsItIsThoughAnotherLauncherSentIt) {
  scratch_.write("tree/b");
  tree_ = read_tree(scratch_.path() / "tree", {});
  const Listing before = list_tree(tree_);
  const std::string folder = scratch_.path() / "home of both";
  const RemoteTree there{folder, before.fingerprint, before.digest};
  run(ask_command(root_of(tree_), there, {}));
  run(unpack_command(*pack(tree_, before, {}), there));
  // Now it is sent from there, without one of its files.
  tree_ = read_tree(folder, {"b"});
  const Listing now = list_tree(tree_);
  auto guess = pack(tree_, now, before.entries);
  guess->basis = before.fingerprint;
  const RemoteTree again{folder, now.fingerprint, now.digest};
  EXPECT_TRUE(reply_in(run(ask_command(root_of(tree_), again, {}, &*guess))).is_same_folder);
  EXPECT_TRUE(fs::exists(fs::path(folder) / "b"));
}

TEST_F(PushStepsTest, OneOfTheHostsThatShareAFolderHasItInHand) {
  const Listing listing = list_tree(tree_);
  const RemoteTree there{"~/shared", listing.fingerprint, listing.digest};
  const auto ask = [&](const InPush& push) {
    return reply_in(run(ask_command(root_of(tree_), there, push)));
  };
  EXPECT_TRUE(ask({"old.0", 7}).is_empty);
  EXPECT_TRUE(ask({"new.0", 1}).is_empty) << "what an old push left is in nobody's way";
  EXPECT_EQ(ask({"new.0", 2}).holder, 1);
  EXPECT_TRUE(ask({"new.0", 1}).is_empty) << "it may ask again";
  EXPECT_TRUE(ask({"new.1", 2}).is_empty);
  run(unpack_command(*pack(tree_, listing, {}), there));
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
  auto package = pack(tree_, now, before_.entries);
  package->basis = before_.fingerprint;
  const RemoteTree there{"~/code", now.fingerprint, now.digest};
  EXPECT_EQ(reply_in(run(ask_command(root_of(tree_), there, {}))).basis, before_.fingerprint);
  scratch_.write("code/a", "by hand");
  EXPECT_TRUE(is_unknown(reply_in(run(unpack_command(*package, there)))));
  EXPECT_EQ(scratch_.read("code/a"), "by hand");
}

TEST_F(PushStepsTest, APackageThatNeverEndsHoldsUpNobody) {
  const Listing listing = list_tree(tree_);
  auto endless = std::make_shared<ssh::SharedBytes>();
  endless->make = [](const ssh::SharedBytes::Write& write) {
    for (;;) {
      write("");
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  };
  for (const Seal seal : {Seal::yes, Seal::no}) {
    RemoteTree there{seal == Seal::yes ? "~/sealed" : "~/open", listing.fingerprint,
                     listing.digest};
    run(ask_command(root_of(tree_), there, {}));
    const auto package = pack(tree_, listing, {}, Compression::zstd, seal);
    const auto part =
        seal == Seal::yes ? std::optional(host::RelayPart{{package->key}, {}, {}}) : std::nullopt;
    Package silent = *package;
    silent.content = endless;
    there.patience = std::chrono::seconds(1);
    const auto broken = reply_in(run(unpack_command(silent, there, part))).unpacked;
    ASSERT_TRUE(broken);
    EXPECT_FALSE(broken->is_whole);
    EXPECT_NE(broken->broken, "");

    const auto unpacked = reply_in(run(unpack_command(*package, there, part))).unpacked;
    EXPECT_TRUE(unpacked && unpacked->is_whole);
  }
}

TEST_F(PushStepsTest, AFileWhoseFolderBecomesALinkAfterItWasListedIsNotPacked) {
  scratch_.write("tree/sub/b", "listed");
  const Tree tree = read_tree(scratch_.path() / "tree", {});
  const Listing listing = list_tree(tree);
  const auto package = pack(tree, listing, {});
  fs::rename(scratch_.path() / "tree/sub", scratch_.path() / "private");
  fs::create_directory_symlink("../private", scratch_.path() / "tree/sub");
  const RemoteTree there{"~/code", listing.fingerprint, listing.digest};
  run(ask_command(root_of(tree), there, {}));
  const ssh::HostResult result = run(unpack_command(*package, there));
  EXPECT_EQ(result.failure, ssh::Failure::local_program);
  EXPECT_EQ(result.error, "sub/b changed while it was being sent");
}

TEST_F(PushStepsTest, AFileThatChangesAfterItWasListedIsNotPacked) {
  const Listing listing = list_tree(tree_);
  const auto package = pack(tree_, listing, {});
  scratch_.write("tree/a", "longer than it was before");
  const RemoteTree there{"~/code", listing.fingerprint, listing.digest};
  run(ask_command(root_of(tree_), there, {}));
  const ssh::HostResult result = run(unpack_command(*package, there));
  EXPECT_EQ(result.failure, ssh::Failure::local_program);
  EXPECT_EQ(result.error, "a changed while it was being sent");
  EXPECT_FALSE(fs::exists(scratch_.path() / "code/a"));
}

}  // namespace
}  // namespace dtool::tree_sync
