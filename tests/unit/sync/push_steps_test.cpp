// A host's side of a push, on this machine: what its scripts do where a whole push does not lead.
#include "sync/push_steps.h"
#include "ssh/quote.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>

#include "ssh/fleet.h"
#include "ssh/script.h"
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
    ssh::Listener nobody;
    return remote_->run({{0, std::move(command)}}, nobody, {}).at(0);
  }

  tests::TemporaryFolder scratch_;
  Tree tree_;
  std::unique_ptr<ssh::Remote> remote_ = ssh::make_fleet({ssh::parse_host("local")}, {});
};

/// Before the real find: knows no -files0-from, as findutils did not before 4.9.
constexpr std::string_view kOldFind =
    "#!/bin/bash\n"
    "case \" $* \" in *' -files0-from '*) exit 1 ;; esac\n"
    "PATH=${PATH#*:} exec find \"$@\"\n";

TEST_F(PushStepsTest, OfThousandsOfFilesOneThatWasTouchedIsSeenWhateverFindIsThere) {
  for (int i = 0; i < 2100; ++i) scratch_.write(fmt::format("many/-{} '\n\"/(", i));
  const Tree tree = read_tree(scratch_.path() / "many", {});
  const Listing listing = list_tree(tree);
  const auto ask = [&](const Place& place) {
    ssh::HostResult answer = run(ask_command(tree, place, ""));
    return read_asked(answer).value_or(Asked{Asked::State::unknown, answer.error + answer.err});
  };
  const auto send_and_touch = [&](const std::string& folder) {
    const Place place{"~/" + folder, listing.fingerprint, listing.digest};
    const Asked empty = ask(place);
    ASSERT_EQ(empty.state, Asked::State::empty) << empty.basis;
    const auto package = pack(tree, listing, {}, empty.compression.value());
    ssh::HostResult result = run(unpack_command(package.value(), empty, place));
    ASSERT_TRUE(read_unpacked(result) && read_unpacked(result)->is_whole) << result.out;
    EXPECT_EQ(ask(place).state, Asked::State::whole);
    // That changes its ctime, and nothing else.
    const fs::path file = scratch_.path() / folder / tree.files.at(1234);
    fs::permissions(file, fs::status(file).permissions());
    EXPECT_EQ(ask(place).state, Asked::State::unknown);
  };
  send_and_touch("with this find");
  fs::permissions(scratch_.write("bin/find", kOldFind), fs::perms::owner_all);
  const std::string bin = scratch_.path() / "bin";
  const tests::TemporaryVariable path("PATH", bin + ":" + std::getenv("PATH"));
  send_and_touch("with an old find");
}

/// A host that has the tree, and the tree with another content.
class GuessedTest : public PushStepsTest {
 protected:
  GuessedTest() {
    const Place place{"~/code", before_.fingerprint, before_.digest};
    ssh::HostResult answer = run(ask_command(tree_, place, ""));
    const auto package = pack(tree_, before_, {}, Compression::gzip);
    run(unpack_command(*package, read_asked(answer).value(), place));
    scratch_.write("tree/a", "changed");
    tree_ = read_tree(scratch_.path() / "tree", {});
  }

  /// Asks with a guess that leads from a tree of that fingerprint.
  ssh::HostResult ask(const std::string& basis) {
    const Listing now = list_tree(tree_);
    auto guess = pack(tree_, now, before_.entries, Compression::gzip);
    guess->basis = basis;
    return run(ask_command(tree_, {"~/code", now.fingerprint, now.digest}, "", &*guess));
  }

  const Listing before_ = list_tree(tree_);
};

TEST_F(GuessedTest, AGuessIsUnpackedWithTheQuestionWhereItLeadsFromWhatIsThere) {
  ssh::HostResult answer = ask(before_.fingerprint);
  EXPECT_EQ(read_asked(answer).value().state, Asked::State::guessed);
  EXPECT_TRUE(read_unpacked(answer).value().is_whole) << answer.out << answer.err;
  EXPECT_EQ(scratch_.read("code/a"), "changed");
  answer = ask(before_.fingerprint);
  EXPECT_EQ(read_asked(answer).value().state, Asked::State::whole);
  scratch_.write("code/a", "by hand");
  answer = ask(before_.fingerprint);
  EXPECT_EQ(read_asked(answer).value().state, Asked::State::unknown) << "an edit is seen";
}

TEST_F(GuessedTest, APackageThatLeadsFromNothingIsUnpackedWhereNothingIsAndNowhereElse) {
  const Listing now = list_tree(tree_);
  const auto guess = pack(tree_, now, {}, Compression::gzip);
  const auto ask_about = [&](const std::string& folder) {
    return run(ask_command(tree_, {folder, now.fingerprint, now.digest}, "", &*guess));
  };
  ssh::HostResult answer = ask_about("~/new");
  EXPECT_EQ(read_asked(answer).value().state, Asked::State::guessed);
  EXPECT_TRUE(read_unpacked(answer).value().is_whole) << answer.out << answer.err;
  EXPECT_EQ(scratch_.read("new/a"), "changed");
  answer = ask_about("~/code");
  EXPECT_EQ(read_asked(answer).value().state, Asked::State::known);
  EXPECT_EQ(scratch_.read("code/a"), "content\n") << "as it was";
  scratch_.write("theirs/a", "by hand");
  answer = ask_about("~/theirs");
  EXPECT_EQ(read_asked(answer).value().state, Asked::State::unknown);
  EXPECT_EQ(scratch_.read("theirs/a"), "by hand");
}

TEST_F(GuessedTest, WhereTheDecompressorIsMissingTheHostTellsWhatItHas) {
  scratch_.write("tree/large", std::string(100'000, 'x'));
  tree_ = read_tree(scratch_.path() / "tree", {});
  const Listing now = list_tree(tree_);
  const auto guess = pack(tree_, now, {}, Compression::gzip);
  ASSERT_EQ(guess->compression, Compression::gzip);
  const auto asked = ask_command(tree_, {"~/new", now.fingerprint, now.digest}, "", &*guess);
  // The host's side alone lacks it.
  const std::string without = "command() { [ \"$2\" != gzip ] && builtin command \"$@\"; }\n";
  const std::string script = asked.input.substr(0, asked.input.rfind("\n#whole"));
  ssh::HostResult answer = run(ssh::bash(without + script, guess->stream));
  EXPECT_EQ(read_asked(answer).value().state, Asked::State::empty) << answer.out << answer.err;
  EXPECT_TRUE(fs::is_empty(scratch_.path() / "new"));
}

TEST_F(GuessedTest, StampsOfFilesWhoseNamesAreOddStayTrue) {
  for (const char* name : {"x\\y", "end\\", "b\nf 644 1 2 3 .", "]$(false)", "a b ./a"})
    scratch_.write(std::string("odd/") + name);
  const auto ask_about = [&](const std::string& basis, const std::vector<Entry>& before) {
    tree_ = read_tree(scratch_.path() / "odd", {});
    const Listing now = list_tree(tree_);
    auto guess = pack(tree_, now, before, Compression::gzip);
    guess->basis = basis;
    ssh::HostResult answer =
        run(ask_command(tree_, {"~/there", now.fingerprint, now.digest}, "", &*guess));
    EXPECT_EQ(read_asked(answer).value().state, Asked::State::guessed);
    EXPECT_TRUE(read_unpacked(answer).value().is_whole) << answer.out << answer.err;
    answer = run(ask_command(tree_, {"~/there", now.fingerprint, now.digest}, ""));
    EXPECT_EQ(read_asked(answer).value().state, Asked::State::whole);
  };
  ask_about("", {});
  for (const char* name : {"x\\y", "b\nf 644 1 2 3 .", "]$(false)", "a b ./a"}) {
    const Listing before = list_tree(read_tree(scratch_.path() / "odd", {}));
    scratch_.write(std::string("odd/") + name, "changed");
    ask_about(before.fingerprint, before.entries);
  }
}

TEST_F(GuessedTest, AfterAGuessOnlyWhatCameIsLookedAtAgain) {
  for (int i = 0; i < 40; ++i) scratch_.write(fmt::format("tree/{}", i));
  tree_ = read_tree(scratch_.path() / "tree", {});
  const Listing all = list_tree(tree_);
  auto guess = pack(tree_, all, before_.entries, Compression::gzip);
  guess->basis = before_.fingerprint;
  run(ask_command(tree_, {"~/code", all.fingerprint, all.digest}, "", &*guess));
  for (const char* name : {"0", "39", "9", "a"}) {
    const Listing earlier = list_tree(tree_);
    scratch_.write(std::string("tree/") + name, "once more " + std::string(name));
    tree_ = read_tree(scratch_.path() / "tree", {});
    const Listing now = list_tree(tree_);
    guess = pack(tree_, now, earlier.entries, Compression::gzip);
    guess->basis = earlier.fingerprint;
    fs::remove(scratch_.path() / "looks");
    fs::permissions(scratch_.write("bin/find",
                                   "#!/bin/bash\n"
                                   "echo looked >> ~/looks\n"
                                   "PATH=${PATH#*:} exec find \"$@\"\n"),
                    fs::perms::owner_all);
    const std::string bin = scratch_.path() / "bin";
    const tests::TemporaryVariable path("PATH", bin + ":" + std::getenv("PATH"));
    ssh::HostResult answer =
        run(ask_command(tree_, {"~/code", now.fingerprint, now.digest}, "", &*guess));
    EXPECT_TRUE(read_unpacked(answer).value().is_whole) << answer.out << answer.err;
    EXPECT_EQ(scratch_.read("looks"), "looked\nlooked\n")
        << "at all before, at what came in its place";
  }
}

TEST_F(GuessedTest, WhereFilesOnlyGoThePackageDoesIt) {
  scratch_.write("tree/a", "content\n");
  scratch_.write("tree/b");
  tree_ = read_tree(scratch_.path() / "tree", {});
  const Listing both = list_tree(tree_);
  const Place place{"~/both", both.fingerprint, both.digest};
  ssh::HostResult answer = run(ask_command(tree_, place, ""));
  run(unpack_command(*pack(tree_, both, {}, Compression::gzip), read_asked(answer).value(), place));
  fs::remove(scratch_.path() / "tree/b");
  tree_ = read_tree(scratch_.path() / "tree", {});
  const Listing one = list_tree(tree_);
  const Place place_of_one{"~/both", one.fingerprint, one.digest};
  answer = run(ask_command(tree_, place_of_one, ""));
  const auto asked = read_asked(answer);
  ASSERT_EQ(asked.value().state, Asked::State::known);
  const auto package = pack(tree_, one, both.entries, Compression::gzip);
  answer = run(unpack_command(*package, *asked, place_of_one));
  EXPECT_TRUE(read_unpacked(answer).value().is_whole) << answer.out << answer.err;
  EXPECT_EQ(read_unpacked(answer).value().removed, 1U);
  answer = run(unpack_command(*package, *asked, place_of_one));
  EXPECT_TRUE(read_unpacked(answer).value().is_whole) << "as another launcher would find it";
}

TEST_F(GuessedTest, TheTreesOwnFolderStaysAsItIsThoughAnotherLauncherSentIt) {
  scratch_.write("tree/b");
  tree_ = read_tree(scratch_.path() / "tree", {});
  const Listing before = list_tree(tree_);
  const std::string folder = scratch_.path() / "home of both";
  const Place place{folder, before.fingerprint, before.digest};
  ssh::HostResult answer = run(ask_command(tree_, place, ""));
  run(unpack_command(*pack(tree_, before, {}, Compression::gzip), read_asked(answer).value(),
                     place));
  // Now it is sent from there, without one of its files.
  tree_ = read_tree(folder, {"b"});
  const Listing now = list_tree(tree_);
  auto guess = pack(tree_, now, before.entries, Compression::gzip);
  guess->basis = before.fingerprint;
  answer = run(ask_command(tree_, {folder, now.fingerprint, now.digest}, "", &*guess));
  EXPECT_EQ(read_asked(answer).value().state, Asked::State::same_folder) << answer.out;
  EXPECT_TRUE(fs::exists(fs::path(folder) / "b"));
}

TEST_F(PushStepsTest, OneOfTheHostsThatShareAFolderHasItInHand) {
  const Listing listing = list_tree(tree_);
  const Place place{"~/shared", listing.fingerprint, listing.digest};
  const auto ask = [&](const std::string& push) {
    ssh::HostResult answer = run(ask_command(tree_, place, push));
    return read_asked(answer).value();
  };
  EXPECT_EQ(ask("old.0 7").state, Asked::State::empty);
  EXPECT_EQ(ask("new.0 1").state, Asked::State::empty)
      << "what an old push left is in nobody's way";
  EXPECT_EQ(ask("new.0 2").state, Asked::State::shared);
  EXPECT_EQ(ask("new.0 2").holder, 1U);
  EXPECT_EQ(ask("new.0 1").state, Asked::State::empty) << "it may ask again";
  const auto asked = ask("new.1 2");
  EXPECT_EQ(asked.state, Asked::State::empty);
  run(unpack_command(*pack(tree_, listing, {}, Compression::gzip), asked, place));
  for (const auto& entry : fs::directory_iterator(scratch_.path() / "shared"))
    EXPECT_FALSE(entry.path().filename().native().starts_with(".~dtool~")) << entry.path();
}

TEST_F(GuessedTest, AnArchiveCutOffBetweenTwoFilesChangesNothing) {
  scratch_.write("tree/b", "changed, too");
  tree_ = read_tree(scratch_.path() / "tree", {});
  const Listing now = list_tree(tree_);
  auto guess = pack(tree_, now, before_.entries, Compression::gzip);
  guess->basis = before_.fingerprint;
  ASSERT_EQ(guess->files, 2U);
  auto cut = std::make_shared<ssh::ProgramOutput>(*guess->stream);
  // A block for the header of each and one for what is in it; the list of removed files is empty,
  // and a file has a header for its time, too.
  const std::string words = ssh::quote_all(cut->arguments);
  cut->arguments = {"bash", "-c", words + " | head -c $((512 * (2 + 1 + 2 + 4)))"};
  guess->stream = cut;
  const auto asked = ask_command(tree_, {"~/code", now.fingerprint, now.digest}, "", &*guess);
  ssh::HostResult answer = run(asked);
  EXPECT_EQ(read_asked(answer).value().state, Asked::State::guessed);
  EXPECT_FALSE(read_unpacked(answer).value().is_whole);
  EXPECT_NE(read_unpacked(answer).value().reason.find("not what was announced"), std::string::npos)
      << answer.out << answer.err;
  EXPECT_EQ(scratch_.read("code/a"), "content\n");
}

TEST_F(GuessedTest, WhatIsEditedWhileItTakesItsPlaceIsNotTakenForTheTree) {
  fs::permissions(scratch_.write("bin/cp",
                                 "#!/bin/bash\n"
                                 "PATH=${PATH#*:} cp \"$@\" && echo edited >> a\n"),
                  fs::perms::owner_all);
  const std::string bin = scratch_.path() / "bin";
  const tests::TemporaryVariable path("PATH", bin + ":" + std::getenv("PATH"));
  ssh::HostResult answer = ask(before_.fingerprint);
  EXPECT_EQ(read_asked(answer).value().state, Asked::State::guessed);
  EXPECT_FALSE(read_unpacked(answer).value().is_whole) << answer.out;
}

TEST_F(GuessedTest, AGuessThatLeadsFromAnotherTreeIsLeftAlone) {
  ssh::HostResult answer = ask(std::string(64, '0'));
  const Asked asked = read_asked(answer).value();
  EXPECT_EQ(asked.state, Asked::State::known);
  EXPECT_EQ(asked.basis, before_.fingerprint);
  EXPECT_EQ(scratch_.read("code/a"), "content\n") << "as it was";
}

TEST_F(GuessedTest, WhatSomebodyEditedThereIsNotTakenForTheTreeThatWasGuessed) {
  scratch_.write("code/a", "by hand");
  ssh::HostResult answer = ask(before_.fingerprint);
  EXPECT_EQ(read_asked(answer).value().state, Asked::State::unknown);
  EXPECT_EQ(scratch_.read("code/a"), "by hand");
}

TEST_F(PushStepsTest, APackageThatNeverEndsHoldsUpNobody) {
  const Listing listing = list_tree(tree_);
  auto endless = std::make_shared<ssh::ProgramOutput>();
  endless->arguments = {"tail", "-f", "/dev/null"};
  for (const Seal seal : {Seal::yes, Seal::no}) {
    Place place{seal == Seal::yes ? "~/sealed" : "~/open", listing.fingerprint, listing.digest};
    ssh::HostResult answer = run(ask_command(tree_, place, ""));
    const auto asked = read_asked(answer);
    ASSERT_TRUE(asked && asked->compression) << answer.error << answer.err;
    const auto package = pack(tree_, listing, {}, *asked->compression, seal);
    ASSERT_TRUE(package);
    Package silent = *package;
    silent.stream = endless;
    place.patience = std::chrono::seconds(1);
    ssh::HostResult result = run(unpack_command(silent, *asked, place));
    EXPECT_NE(result.out.find("dtool-answer broken="), std::string::npos) << result.out;
    ASSERT_TRUE(read_unpacked(result)) << result.err;
    EXPECT_FALSE(read_unpacked(result)->is_whole);

    result = run(unpack_command(*package, *asked, place));
    ASSERT_TRUE(read_unpacked(result));
    EXPECT_TRUE(read_unpacked(result)->is_whole) << result.out << result.err;
  }
}

}  // namespace
}  // namespace dtool::tree_sync
