// SPDX-License-Identifier: MIT
// A record's text, which may hold any bytes, and what is compared of two.
#include "cli/record/record.h"

#include <gtest/gtest.h>

#include "cli/record/comparison.h"
#include "ssh/machine/encodings.h"
#include "tests/unit/full_run.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::cli {
namespace {

RunRecord some_record() {
  RunRecord record;
  record.run_id = "digits_1";
  record.experiment = "[train]\nepochs = 3\n[optimizer]\nlearning_rate = 0.5\n";
  record.program = {"a b", "\xff\xfe", "\xf4\x8f\xba\x80", "ü"};
  record.seed = 18446744073709551615U;
  record.environment = {{"modules", {"gcc"}}};
  record.code.folder = "/code";
  record.code.commit = std::string(40, 'a');
  record.code.is_dirty = true;
  record.code.diff = std::string("diff --git a/x y.py b/x y.py\n+\xff\ndiff --git a/z b/z\n-1\n");
  record.machines.emplace_back().host = "h1";
  record.machines[0].gpus = {"H100"};
  record.simulator = {{"package", "walks 1.0"}, {"source", "5c5d"}};
  record.end.emplace().state = "ended";
  record.end->metrics = {{"loss", 0.5}};
  record.forgotten = {"2026-11-26T01:02:03Z", "h[1-2]"};
  return record;
}

TEST(Record, IsReadAsItWasWritten) {
  const RunRecord record = some_record();
  const RunRecord read = parse_record(to_text(record), "x");
  EXPECT_EQ(read.program, record.program);
  EXPECT_EQ(read.seed, record.seed);
  EXPECT_EQ(read.code.diff, record.code.diff);
  EXPECT_EQ(read.environment, record.environment);
  EXPECT_EQ(read.simulator, record.simulator);
  EXPECT_EQ(read.end->metrics, record.end->metrics);
  EXPECT_EQ(read.forgotten->left_on, record.forgotten->left_on);
  EXPECT_EQ(to_text(read), to_text(record));
}

TEST(Record, HasEveryFieldOfARun) {
  RunRecord record;
  static_cast<killfiles::Run&>(record) = tests::full_run();
  const RunRecord read = parse_record(to_text(record), "x");
  EXPECT_TRUE(static_cast<const killfiles::Run&>(read) == record) << to_text(read);
}

TEST(Record, HasEveryFieldOfAMachine) {
  RunRecord record = some_record();
  RecordedMachine& machine = record.machines[0];
  machine = {3, "h", {"m", "n", "b", "1", "k"}, "c", "t", "o", 4, 5, 6, 7, {"g"}, "d", "v"};
  const auto read = to_json(parse_record(to_text(record), "x"))["machines"][0];
  EXPECT_EQ(read, nlohmann::json::parse(R"({"id": 3, "host": "h", "identity": {"machine_id": "m",
      "name": "n", "boot_id": "b", "process_namespace": "1", "host_key": "k"}, "code_folder": "c",
      "tree": "t", "output_folder": "o", "processes": 4, "threads": 5, "cores": 6,
      "memory_bytes": 7, "gpus": ["g"], "driver": "d", "trainer": "v"})"));
}

TEST(Record, OfAnOlderVersionLeavesLaterFieldsAsTheyAreUsual) {
  nlohmann::json older = nlohmann::json::parse(to_text(some_record()));
  for (const char* const later : {"lost_after", "nice", "rerun_of", "flags"}) older.erase(later);
  const RunRecord read = parse_record(older.dump(), "x");
  EXPECT_EQ(read.lost_after, std::nullopt);
  EXPECT_EQ(read.nice, std::nullopt);
  EXPECT_EQ(read.rerun_of, "");
  EXPECT_FALSE(read.flags);
}

TEST(Record, TellsFlagsAndEarlierRunsOrThatAnOlderVersionDidNot) {
  RunRecord record = some_record();
  EXPECT_FALSE(parse_record(to_text(record), "x").flags);
  record.chain = {"digits_0"};
  record.flags = {{"--gpus", {"0,1"}}, {"--exclude", {"a", "\xff"}}};
  const RunRecord read = parse_record(to_text(record), "x");
  EXPECT_EQ(read.chain, record.chain);
  EXPECT_EQ(read.flags, record.flags);
  record.chain = {"../digits_0"};
  EXPECT_THROW(parse_record(to_text(record), "x"), std::runtime_error);
}

TEST(Record, ASpoiltOneIsRefused) {
  const std::string text = to_text(some_record());
  EXPECT_THROW(parse_record(text.substr(0, text.size() / 2), "x"), std::runtime_error);
  EXPECT_THROW(parse_record("[]", "x"), std::runtime_error);
  EXPECT_THROW(parse_record("{\"format\": 2, \"run_id\": \"a\"}", "x"), std::runtime_error);
  EXPECT_THROW(parse_record("{\"format\": 1, \"run_id\": \"../a\"}", "x"), std::runtime_error);
  EXPECT_THROW(parse_record("{\"format\": 1, \"run_id\": \"a\", \"seed\": \"b\"}", "x"),
               std::runtime_error);
  EXPECT_EQ(parse_record("{\"format\": 1, \"run_id\": \"a\", \"later\": 1}", "x").run_id, "a");
}

TEST(Record, IsKeptUntilItIsForgotten) {
  const tests::TemporaryFolder home;
  const tests::TemporaryVariable variable("HOME", home.path().string());
  EXPECT_FALSE(find_record("digits_1"));
  write_record(some_record());
  write_listing("digits_1", std::string("a\0b\0", 4));
  EXPECT_EQ(find_record("digits_1")->run_id, "digits_1");
  EXPECT_EQ(read_listing("digits_1"), std::string("a\0b\0", 4));
  forget_record("digits_1");
  EXPECT_FALSE(find_record("digits_1"));
  EXPECT_FALSE(read_listing("digits_1"));
}

TEST(PackedText, IsReadAsItWasWrittenOrRefused) {
  for (const std::string text : {"", "a", "ab", "abc", "\xff\x01\x02\x03"}) {
    EXPECT_EQ(ssh::from_base64(ssh::to_base64(text)), text);
    EXPECT_EQ(unpack(pack(text), 100), text);
  }
  EXPECT_EQ(ssh::to_base64("abcd"), "YWJjZA==");
  for (const char* text : {"a", "a===", "=aaa", "YW=j", "YW!j"})
    EXPECT_FALSE(ssh::from_base64(text));
  EXPECT_FALSE(unpack(pack(std::string(101, 'a')), 100));
  EXPECT_FALSE(unpack("no zstd", 100));
  EXPECT_FALSE(unpack(pack("abcdefgh").substr(0, 8), 100));
}

TEST(Comparison, NamesSettingsByTheirKeys) {
  EXPECT_EQ(
      flatten_toml("a = 1\n[b]\nc = [1, 2]\n[[d]]\ne = 'x'\n"),
      (std::map<std::string, std::string>{{"a", "1"}, {"b.c", "[ 1, 2 ]"}, {"d[0].e", "'x'"}}));
  EXPECT_THROW(flatten_toml("a ="), std::invalid_argument);
}

TEST(Comparison, FindsTheFilesOfADiff) {
  const auto files = files_of_diff(some_record().code.diff);
  EXPECT_EQ(files.size(), 2U);
  EXPECT_TRUE(files.contains("x y.py"));
  EXPECT_EQ(files.at("z"), "diff --git a/z b/z\n-1\n");
  EXPECT_TRUE(files_of_diff("").empty());
}

TEST(Comparison, TellsWhereTwoRunsDiffer) {
  const RunRecord before = some_record();
  RunRecord now = before;
  EXPECT_TRUE(compare_runs(before, now, {}, {}).settings.empty());
  now.experiment = "[train]\nepochs = 4\n[optimizer]\nlearning_rate = 0.5\n";
  now.machines[0].gpus.clear();
  now.code.diff = "diff --git a/z b/z\n-1\n";
  now.end->metrics = {{"loss", 0.25}, {"time", 5}};
  now.chain = {"a", "b"};
  now.simulator["package"] = "walks 1.1";
  const Comparison found = compare_runs(before, now, {}, {});
  EXPECT_EQ(found.settings,
            (std::vector<Difference>{{"resumes", "", "a b"},
                                     {"simulator: package", "walks 1.0", "walks 1.1"},
                                     {"train.epochs", "3", "4"}}));
  EXPECT_EQ(found.hosts, (std::vector<Difference>{{"machine 0 GPUs", "H100", ""}}));
  EXPECT_EQ(found.metrics, (std::vector<Difference>{{"loss", "0.5", "0.25"}}));
  EXPECT_EQ(found.code, (std::vector<Difference>{{"x y.py", "there", "gone"}}));
  EXPECT_NE(found.code_note, "");
}

TEST(Comparison, PackagesThatOneRunDoesNotTellAreOneRow) {
  RunRecord before = some_record(), now = some_record();
  before.packages = "";
  now.packages = "python 3.11.2\nnumpy==1.24.2\nzlib==1\n";
  EXPECT_EQ(compare_runs(before, now, {}, {}).settings,
            (std::vector<Difference>{{"packages", "not known", "known"}}));
  before.packages = "python 3.11.2\nnumpy==1.24.1\n";
  EXPECT_EQ(
      compare_runs(before, now, {}, {}).settings,
      (std::vector<Difference>{{"package numpy", "1.24.1", "1.24.2"}, {"package zlib", "", "1"}}));
}

TEST(Comparison, TellsNothingOfCodeThatNeitherHad) {
  RunRecord shipped = some_record();
  shipped.code = {};
  EXPECT_EQ(compare_runs(shipped, shipped, {}, {}).code_note, "");
  EXPECT_NE(compare_runs(shipped, some_record(), {}, {}).code_note, "");
}

TEST(MetricText, HasTheDigitsThatWereMeant) {
  EXPECT_EQ(metric_text(0.10000000149011612), "0.1");  // the float 0.1
  EXPECT_EQ(metric_text(0.1), "0.1");
  EXPECT_EQ(metric_text(0.30000000000000004), "0.3");
  EXPECT_EQ(metric_text(2.5), "2.5");
  EXPECT_EQ(metric_text(12345678901LL), "12345678901");
}

}  // namespace
}  // namespace dtool::cli
