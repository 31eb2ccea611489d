// SPDX-License-Identifier: MIT
// How the end of a rank, or of mpirun, is put into words.
#include "ssh/host/session/last_words.h"

#include <gtest/gtest.h>

#include "ssh/host/session/rank.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

TEST(LastWords, AreALineAndItsHint) {
  const tests::TemporaryFolder folder;
  const auto read = [&folder](const std::string& content) {
    return read_last_words(folder.write("words", content).string());
  };
  EXPECT_EQ(read("no such file\nhint: make one\n"), "no such file (hint: make one)");
  EXPECT_EQ(read("no such file\nmore\n"), "no such file");
  EXPECT_EQ(read("without an end"), "without an end");
  EXPECT_EQ(read(""), "");
  EXPECT_EQ(read_last_words((folder.path() / "absent").string()), "");
  EXPECT_EQ(read(std::string(5000, 'x')).size(), 2000U);
}

TEST(LastWords, GiveSomeExitCodesAMeaning) {
  EXPECT_EQ(meaning_of({"rank 1", 2, "no such key"}), Meaning::mistake);
  EXPECT_EQ(meaning_of({"rank 1", 3, "a peer is gone"}), Meaning::aftermath);
  EXPECT_EQ(meaning_of({"rank 1", 1, "no room"}), Meaning::failure);
  for (const int code : {1, 2, 3, 4}) EXPECT_EQ(meaning_of({"rank 1", code, ""}), Meaning::failure);
}

TEST(LastWords, ALineOfAVictimIsAnAftermathUnlessItWasKilled) {
  EXPECT_EQ(meaning_of({"rank 1", 1, "", "Connection closed by peer"}), Meaning::aftermath);
  EXPECT_EQ(meaning_of({"rank 1", 134, "", "NCCL communicator was aborted"}), Meaning::aftermath);
  EXPECT_EQ(meaning_of({"rank 1", 137, "", "Connection closed by peer"}), Meaning::failure);
  EXPECT_EQ(meaning_of({"rank 1", 1, "no room", "Connection closed by peer"}), Meaning::failure);
  EXPECT_EQ(meaning_of({"rank 1", 1, "", "ValueError: sick"}), Meaning::failure);
}

TEST(LastWords, StandBehindHowTheRankEnded) {
  EXPECT_EQ(describe({"rank 1", 1, "", "sick"}), "rank 1 ended with exit code 1: sick");
  EXPECT_EQ(describe({"rank 1", 139, "", "epoch 3"}),
            "rank 1 was killed by signal 11 (SEGV); its last line: epoch 3");
  EXPECT_EQ(describe({"rank 1", 1, "no room"}), "rank 1 ended with exit code 1: no room");
  EXPECT_EQ(describe({"rank 1", 137, ""}, "no memory"),
            "rank 1 was killed by signal 9 (KILL): no memory");
  EXPECT_EQ(describe({"rank 1", 3, "a peer is gone"}), "a peer is gone");
  EXPECT_EQ(describe({"rank 1", 3, ""}), "rank 1 ended with exit code 3");
  EXPECT_EQ(describe({"rank 1", 4, "no such key"}), "no such key") << "all ranks say the same";
  EXPECT_EQ(describe({"rank 1", 5, "no such key"}), "rank 1 ended with exit code 5: no such key");
  EXPECT_EQ(describe({"rank 1", 1, "no room", "epoch 3"}),
            "rank 1 ended with exit code 1: no room");
}

TEST(LastWords, OnlyCodesThatASignalGivesTellOfOne) {
  const auto described = [](int code) { return describe({"rank 1", code, "", "epoch 3"}); };
  EXPECT_EQ(described(128), "rank 1 ended with exit code 128: epoch 3");
  EXPECT_EQ(described(129), "rank 1 was killed by signal 1 (HUP); its last line: epoch 3");
  EXPECT_EQ(described(192), "rank 1 ended with exit code 192; its last line: epoch 3")
      << "the last of the signals, which have no names at the end";
  EXPECT_EQ(described(193), "rank 1 ended with exit code 193: epoch 3");
}

TEST(WordsOfMpirun, AreItsFirstThatSaySomething) {
  EXPECT_EQ(words_of_mpirun("-----\n  ORTE has lost communication with a remote daemon.\n\n"
                            "  HNP daemon   : [[1,0],0] on node h1\n"
                            "  Remote daemon: [[1,0],1] on node h2\n-----\n"),
            "ORTE has lost communication with a remote daemon. (h2)");
  EXPECT_EQ(words_of_mpirun("Primary job  terminated normally\n[h1:1] PMIX ERROR: x\ntwo\nlines\n"),
            "two lines");
  for (const char* noise :
       {"Primary job", "a non-zero exit code", "Terminated", "ORTE was unable to reliably",
        "[h1] PMIX ERROR: x", "[h1] Warning: setpgid failed"})
    EXPECT_EQ(words_of_mpirun(std::string(noise) + "\nwhy"), "why");
  for (const char* word :
       {"[h1] why", "a PMIX ERROR: x", "a Remote daemon: on h2", "why on node h2"})
    EXPECT_EQ(words_of_mpirun(word), word);
  EXPECT_EQ(words_of_mpirun("\x1b~ \x7fwhy\n\nnot this\n"), "~ why");
  EXPECT_EQ(words_of_mpirun(std::string(600, 'x') + "\n Remote daemon: on node h2"),
            std::string(500, 'x') + " (h2)");
  EXPECT_EQ(words_of_mpirun(""), "mpirun left no word of why");
}

}  // namespace
}  // namespace dtool::host
