// SPDX-License-Identifier: MIT
// Killfiles on disk: written, listed, found.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <chrono>
#include <system_error>

#include "killfiles/killfile.h"
#include "tests/unit/disk_steps.h"
#include "tests/unit/fault.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::killfiles {
namespace {

using tests::fault_of;

class KillfileFolderTest : public testing::Test {
 protected:
  std::filesystem::path record(const std::string& run_id, const std::string& created) {
    Killfile killfile;
    killfile.run_id = run_id;
    killfile.created = created;
    killfile.machines = {{0, "gpu01", "dtool_" + run_id, state_folder(run_id, 0), "", ""}};
    return write(folder(), killfile);
  }

  std::filesystem::path folder() const { return folder_.path() / ".dtool"; }

  std::string find_fault(const std::string& id) {
    return fault_of([&] { find(folder(), id); });
  }

  tests::TemporaryFolder folder_;
};

TEST_F(KillfileFolderTest, WritesAFileForItsOwnerAloneThatReadsBack) {
  const std::filesystem::path file = record("run1", "2026-11-21T03:45:12Z");
  EXPECT_EQ(file, folder() / "run1.killfile");
  EXPECT_EQ(path_of(folder(), "run1"), file);
  EXPECT_EQ(read(file).machines.at(0).session, "dtool_run1");
  struct stat status = {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(folder().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(KillfileFolderTest, HalvesThatKilledLaunchersLeftGoAfterADay) {
  record("run1", "");
  const auto day_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24);
  std::filesystem::last_write_time(folder_.write(".dtool/.young.killfile.abc123", ""),
                                   day_ago + std::chrono::minutes(1));
  for (const char* name : {".dtool/.old.killfile.abc123", ".dtool/.notes", ".dtool/old.killfile"})
    std::filesystem::last_write_time(folder_.write(name, ""), day_ago);
  folder_.write(".dtool/.being_written.killfile.abc123", "");
  record("run2", "");
  const auto is_there = [&](const char* name) { return std::filesystem::exists(folder() / name); };
  EXPECT_FALSE(is_there(".old.killfile.abc123"));
  EXPECT_TRUE(is_there(".young.killfile.abc123"));
  EXPECT_TRUE(is_there(".being_written.killfile.abc123"));
  EXPECT_TRUE(is_there(".notes"));
  EXPECT_TRUE(is_there("old.killfile"));
}

TEST_F(KillfileFolderTest, ARunThatCouldNotBeRecordedHasNoKillfileThoughItWasRenamed) {
  const auto kept = record("kept", "");
  tests::DiskSteps steps;
  steps.fail_flushes_of("/.dtool");
  EXPECT_THROW(record("new", ""), std::system_error);
  EXPECT_FALSE(std::filesystem::exists(path_of(folder(), "new")));
  EXPECT_THROW(record("kept", ""), std::system_error);
  EXPECT_TRUE(std::filesystem::exists(kept));
}

TEST_F(KillfileFolderTest, RefusesAPathForWhatIsNoRunId) {
  EXPECT_EQ(fault_of([&] { path_of(folder(), "../x"); }), "'../x' is no run id");
}

TEST_F(KillfileFolderTest, ReadsEitherForm) {
  EXPECT_EQ(read(folder_.write("a", "\n10.0.0.1 allenact_x\n")).machines.at(0).session,
            "allenact_x");
  EXPECT_EQ(read(record("run1", "")).run_id, "run1");
}

TEST_F(KillfileFolderTest, RefusesFilesOfNeitherForm) {
  const auto fault = [&](const std::string& text) {
    return fault_of([&] { read(folder_.write("f", text)); });
  };
  for (const std::string text :
       {"", "\n\n", "one\n", "a b c\n", "[ssh] #x\n", "# dtool\n", "a=b c\n"}) {
    EXPECT_NE(fault(text), "") << text;
  }
  EXPECT_NE(fault("10.0.0.1 allenact_x\n\nodd\n").find("f:3: the line is not"), std::string::npos);
  EXPECT_NE(fault_of([&] { read(folder_.path() / "none"); }).find("cannot be read"),
            std::string::npos);
  EXPECT_NE(fault_of([&] { read(folder_.path()); }).find("cannot be read"), std::string::npos);
}

TEST_F(KillfileFolderTest, CutShortAnywhereIsRefusedByReadToo) {
  const std::string text = tests::read_text(record("run1", ""));
  for (std::size_t length = 0; length + 1 < text.size(); ++length) {
    EXPECT_NE(fault_of([&] { read(folder_.write("cut", text.substr(0, length))); }), "") << length;
  }
}

TEST_F(KillfileFolderTest, ListsNewestFirst) {
  record("b", "2026-11-20T00:00:00Z");
  record("c", "2026-11-22T00:00:00Z");
  record("a", "2026-11-21T00:00:00Z");
  std::string ids;
  for (const Listed& run : list(folder())) ids += run.killfile.value().run_id;
  EXPECT_EQ(ids, "cab");
}

TEST_F(KillfileFolderTest, ListsRunsOfTheSameSecondByWhenTheyWereWritten) {
  const auto first = record("run_b", "2026-11-21T03:45:12Z");
  const auto second = record("run_a", "2026-11-21T03:45:12Z");
  std::filesystem::last_write_time(
      first, std::filesystem::last_write_time(second) - std::chrono::milliseconds(1));
  const auto runs = list(folder());
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].killfile->run_id, "run_a");
}

TEST_F(KillfileFolderTest, ListsUnreadableFilesWithWhyAndPassesOthersOver) {
  record("good", "2026-11-20T00:00:00Z");
  folder_.write(".dtool/bad.killfile", "run_id = 3\n");
  folder_.write(".dtool/config.toml", "");
  folder_.write(".dtool/.good.killfile.Xy12Zw", "half");
  folder_.write(".dtool/.hidden.killfile", "half");
  folder_.write(".dtool/folder.killfile/x", "");
  const std::vector<Listed> runs = list(folder());
  ASSERT_EQ(runs.size(), 3u);
  for (const Listed& run : runs) {
    const bool is_good = run.file.stem() == "good";
    EXPECT_EQ(run.killfile.has_value(), is_good);
    EXPECT_EQ(run.error.empty(), is_good);
  }
}

TEST_F(KillfileFolderTest, AFileWithoutATimeHasThatOfItsLastChange) {
  record("old", "2026-11-20T00:00:00Z");
  record("new", "2026-11-22T00:00:00Z");
  const auto file = folder_.write(".dtool/between.killfile", "10.0.0.1 allenact_x\n");
  const timespec noon{1795262400, 0};  // 2026-11-21T12:00:00Z
  const std::array<timespec, 2> times = {noon, noon};
  ASSERT_EQ(utimensat(AT_FDCWD, file.c_str(), times.data(), 0), 0);
  std::string names;
  for (const Listed& run : list(folder())) names += run.file.stem().string() + " ";
  EXPECT_EQ(names, "new between old ");
}

TEST_F(KillfileFolderTest, SaysWhyTheFolderCannotBeRead) {
  const auto file = folder_.write("file", "");
  try {
    list(file);
    FAIL();
  } catch (const std::system_error& fault) {
    EXPECT_TRUE(std::string(fault.what()).starts_with(file.string() + ": cannot be read: "));
  }
}

TEST_F(KillfileFolderTest, ListsNothingWhereThereIsNoFolder) {
  EXPECT_TRUE(list(folder()).empty());
}

TEST_F(KillfileFolderTest, FindsARunByItsIdOrTheBeginningOfOne) {
  record("20261121-a", "");
  record("20261121-ab", "");
  record("20261122-c", "");
  EXPECT_EQ(find(folder(), "20261122").killfile.value().run_id, "20261122-c");
  EXPECT_EQ(find(folder(), "20261121-a").killfile.value().run_id, "20261121-a") << "a whole id";
  EXPECT_EQ(find(folder(), "20261121-ab").killfile.value().run_id, "20261121-ab");
}

TEST_F(KillfileFolderTest, FindsARunByItsTagByAPartOfItsIdAndAsTheLast) {
  record("train_lr3_20261121-000000-aaaaaa", "2026-11-21T00:00:00Z");
  record("train_lr3_20261122-000000-bbbbbb", "2026-11-22T00:00:00Z");
  record("other_20261123-000000-cccccc", "2026-11-23T00:00:00Z");
  std::string told;
  const auto note = [&told](std::string_view line) { told = line; };
  const auto found = [&](std::string_view text) {
    told.clear();
    return find(folder(), text, {}, note).killfile.value().run_id;
  };
  EXPECT_EQ(found("last"), "other_20261123-000000-cccccc");
  EXPECT_EQ(found("aaaaaa"), "train_lr3_20261121-000000-aaaaaa");
  EXPECT_EQ(told, "");
  EXPECT_EQ(found("lr3"), "train_lr3_20261122-000000-bbbbbb");
  EXPECT_EQ(told, "2 runs fit lr3: this is the newest, train_lr3_20261122-000000-bbbbbb");
  EXPECT_EQ(found("train_lr3"), "train_lr3_20261122-000000-bbbbbb");
  EXPECT_EQ(find(folder(), "lr3").killfile.value().run_id, "train_lr3_20261122-000000-bbbbbb")
      << "and nobody is told";
  EXPECT_EQ(find_fault("train").substr(0, 30), "'train' begins the id of 2 run");
  EXPECT_EQ(find_fault("000000").substr(0, 37), "'000000' is part of the ids of 3 runs");
}

TEST_F(KillfileFolderTest, TakesNoPartOfAnIdWhereThatWouldEndARun) {
  record("train_lr10_20261121-000000-aaaaaa", "2026-11-21T00:00:00Z");
  const auto fault = [&](std::string_view text) {
    return fault_of([&] { find(folder(), text, {}, {}, Parts::do_not_count); });
  };
  EXPECT_NE(fault("lr1").find("no run 'lr1' is recorded"), std::string::npos) << fault("lr1");
  EXPECT_NE(fault("rain").find("did you mean train_lr10_20261121-000000-aaaaaa?"),
            std::string::npos);
  for (const char* text : {"lr10", "train_lr10", "train_lr10_2026", "last"})
    EXPECT_EQ(fault(text), "") << text;
}

TEST_F(KillfileFolderTest, AsksWhichOfSeveralRunsAreStillMeant) {
  const std::string first = "a_x_20261121-000000-aaaaaa";
  record(first, "2026-11-21T00:00:00Z");
  record("a_x_20261122-000000-bbbbbb", "2026-11-22T00:00:00Z");
  for (const char* text : {"x", "a"}) {
    const auto only_first = [&](std::vector<Listed> found) {
      std::erase_if(found, [&](const Listed& run) { return run.killfile->run_id != first; });
      return found;
    };
    EXPECT_EQ(find(folder(), text, only_first).killfile.value().run_id, first);
  }
  const auto both = [](std::vector<Listed> found) { return found; };
  EXPECT_THROW(find(folder(), "x", both), std::invalid_argument) << "neither is preferred";
  const auto none = [](const std::vector<Listed>&) { return std::vector<Listed>(); };
  EXPECT_EQ(find(folder(), "x", none).killfile.value().run_id, "a_x_20261122-000000-bbbbbb");
  const auto nobody_asks = [](std::vector<Listed> found) {
    ADD_FAILURE() << "one run alone is meant";
    return found;
  };
  EXPECT_EQ(find(folder(), "aaaaaa", nobody_asks).killfile.value().run_id, first);
}

TEST_F(KillfileFolderTest, NamesTheCandidatesOrTheRecordedRuns) {
  record("20261121-a", "2026-11-21T00:00:00Z");
  record("20261121-b", "2026-11-22T00:00:00Z");
  EXPECT_EQ(find_fault("2026"),
            "'2026' begins the id of 2 runs: 20261121-b, 20261121-a\n"
            "hint: give more of the id of the one you mean");
  EXPECT_EQ(find_fault("x"), "no run 'x' is recorded in " + folder().string() +
                                 "\nhint: these runs are recorded: 20261121-b, 20261121-a");
  EXPECT_EQ(find_fault("20261112-a"), "no run '20261112-a' is recorded in " + folder().string() +
                                          "\nhint: did you mean 20261121-a?");
  EXPECT_EQ(find_fault(""), "the run id is empty");
}

TEST_F(KillfileFolderTest, NamesTenRunsAndHowManyMoreThereAre) {
  const auto named = [&] { return find_fault("run"); };
  for (int i = 0; i < 10; ++i)
    record(fmt::format("run{}", i), fmt::format("2026-11-2{}T00:00:00Z", i));
  const std::string hint = "\nhint: give more of the id of the one you mean";
  EXPECT_EQ(named(),
            "'run' begins the id of 10 runs: run9, run8, run7, run6, run5, run4, run3, run2, run1, "
            "run0" +
                hint);
  record("run10", "2026-11-30T00:00:00Z");
  record("run11", "2026-12-01T00:00:00Z");
  EXPECT_EQ(named(),
            "'run' begins the id of 12 runs: run11, run10, run9, run8, run7, run6, run5, run4, "
            "run3, run2 and 2 more" +
                hint);
}

TEST(RunsMeant, AreByWholeIdThenLastThenBeginningThenTagThenPart) {
  const std::string b_x = "b_x_20261122-034512-bbbbbb";
  const std::string a_x = "a_x_20261121-034512-aaaaaa";
  const std::string last = "last_20261120-034512-cccccc";
  const std::vector<std::string> all = {b_x, a_x, last};
  const auto expect = [&](const std::string& text, const std::vector<std::string>& ids,
                          bool is_tag) {
    const Meant meant = runs_meant(all, text);
    EXPECT_EQ(meant.ids, ids) << text;
    EXPECT_EQ(meant.is_tag, is_tag) << text;
  };
  expect(a_x, {a_x}, false);
  expect("last", {b_x}, false);
  expect("last-2", {last}, false);
  expect("last-3", {}, false);
  expect("last--1", {}, false);
  expect("x", {b_x, a_x}, true);
  expect("a_x", {a_x}, true);
  expect("a_", {a_x}, false);
  expect("la", {last}, false);
  expect("2026112", {b_x, a_x, last}, false);
  expect("aaaaaa", {a_x}, false);
  expect("none", {}, false);
  EXPECT_EQ(runs_meant({"last", "b"}, "last").ids, std::vector<std::string>{"last"});
  EXPECT_EQ(runs_meant({"b", "last-1", "c"}, "last-1").ids, std::vector<std::string>{"last-1"});
  EXPECT_TRUE(runs_meant({}, "last").ids.empty());
  // A beginning goes before a tag, and a tag is not the whole name.
  EXPECT_EQ(runs_meant({"a_x_20261122-034512-bbbbbb", "x_20261121-034512-aaaaaa"}, "x").ids,
            std::vector<std::string>{"x_20261121-034512-aaaaaa"});
}

TEST_F(KillfileFolderTest, AGroupOfHostsIsNoRun) {
  record("20261121-a", "");
  EXPECT_EQ(find_fault("@lab"),
            "'@lab' is a group of hosts, and a run is wanted\nhint: dtool list shows the runs");
}

TEST_F(KillfileFolderTest, SaysSoWhereNothingIsRecorded) {
  EXPECT_EQ(find_fault("x"),
            "no run 'x' is recorded in " + folder().string() + "\nhint: dtool run starts one");
}

TEST_F(KillfileFolderTest, FindsFilesWithoutARunIdByTheirName) {
  folder_.write(".dtool/2021_AB12.killfile", "10.0.0.1 allenact_x\n");
  folder_.write(".dtool/broken.killfile", "run_id = \n");
  EXPECT_EQ(find(folder(), "2021").killfile.value().machines.size(), 1u);
  EXPECT_NE(find(folder(), "broken").error, "");
}

TEST_F(KillfileFolderTest, RefusesARunRecordedTwice) {
  const std::filesystem::path file = record("run1", "");
  std::filesystem::copy(file, folder() / "copy.killfile");
  std::filesystem::last_write_time(
      file, std::filesystem::last_write_time(file) - std::chrono::seconds(1));
  EXPECT_EQ(find_fault("run1"),
            "run 'run1' is recorded twice: " + (folder() / "copy.killfile").string() + " and " +
                file.string());
}

}  // namespace
}  // namespace dtool::killfiles
