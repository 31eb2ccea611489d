// SPDX-License-Identifier: MIT
// CSV files as numbers, and the sets made of them.
#include "trainer/data/csv.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <chrono>
#include <clocale>
#include <cmath>
#include <fstream>
#include <limits>
#include <set>

#include "tests/trainer/csv_text.h"
#include "tests/unit/temporary_folder.h"
#include "trainer/data/csv_data.h"
#include "trainer/data/sampler.h"
#include "trainer/settings/usage_error.h"

using namespace dtool::trainer;

namespace {

using Values = std::vector<double>;
using Names = std::vector<std::string>;
using Classes = std::vector<std::int64_t>;

constexpr CsvFormat kNoHeader{',', Header::absent};

/// A table, and all that is in it.
struct Content {
  Names columns;
  std::int64_t rows;
  Values values;  ///< row by row
  std::vector<std::int64_t> lines;
};

Content content_of(const CsvTable& table) {
  Content content{table.columns(), table.rows(), {}, {}};
  table.read([&](const CsvRow& row) {
    EXPECT_EQ(row.number, std::ssize(content.lines));
    content.values.insert(content.values.end(), row.at.begin(), row.at.end());
    content.lines.push_back(row.line);
  });
  return content;
}

CsvTable table_of(const std::string& text, const CsvFormat& format = {}) {
  return parse_csv("t.csv", text, format);
}

Content csv_of(const std::string& text, const CsvFormat& format = {}) {
  return content_of(table_of(text, format));
}

/// Writes into the file that is there. The clock of a file's times may stand still for some
/// milliseconds.
void write_into(const std::filesystem::path& file, const std::string& text) {
  const auto before = std::filesystem::last_write_time(file);
  std::ofstream(file) << text;
  std::filesystem::last_write_time(file, before + std::chrono::seconds(1));
}

std::string was_changed(const std::string& file) {
  return file +
         ": was changed while it was read | write another file, and rename it when it is whole";
}

/// The mistake's message and hint.
template <class Action>
std::string mistake_by(Action action) {
  try {
    action();
  } catch (const UsageError& problem) {
    return problem.what() + (problem.hint.empty() ? "" : " | " + problem.hint);
  }
  return "no mistake";
}

std::string mistake_in(const std::string& text, const CsvFormat& format = {}) {
  return mistake_by([&] { csv_of(text, format); });
}

CsvSets sets_of(const std::string& text, const CsvSettings& settings, TargetKind kind) {
  return make_csv_sets(table_of(text), std::nullopt, settings, kind);
}

/// 100 rows `i,2i,i % 3`.
std::string hundred_rows() {
  std::string text = "a,b,c\n";
  for (int i = 0; i < 100; ++i) {
    text += std::to_string(i) + "," + std::to_string(2 * i) + "," + std::to_string(i % 3) + "\n";
  }
  return text;
}

}  // namespace

TEST(Csv, ATableWithoutAHeaderHasNumberedColumns) {
  const auto table = csv_of("1,2.5,-3e2\n4,.5,+6\n", kNoHeader);
  EXPECT_EQ(table.columns, (Names{"1", "2", "3"}));
  EXPECT_EQ(table.values, (Values{1, 2.5, -300, 4, .5, 6}));
  EXPECT_EQ(table.rows, 2);
}

TEST(Csv, AHeaderNamesTheColumns) {
  const auto table = csv_of("height,\"the \"\"weight\"\"\", age \n1,2,3\n");
  EXPECT_EQ(table.columns, (Names{"height", "the \"weight\"", " age "}));
  EXPECT_EQ(table.values, (Values{1, 2, 3}));
}

TEST(Csv, AnUnnamedFirstColumnAsDataFramesWriteItIsNamedByItsPlace) {
  EXPECT_EQ(csv_of(",a,b\n0,1,2\n").columns, (Names{"column 1", "a", "b"}));
}

TEST(Csv, ManyHandsWriteTheSameTable) {
  const Values expected = {1, 2, 3, 4};
  for (const char* text : {"1,2\n3,4\n", "1,2\n3,4", "1,2\r\n3,4\r\n", "1,2\r\n3,4",
                           "\xef\xbb\xbf"
                           "1,2\n3,4\n",
                           "\"1\",\"2\"\n3,\"4\"\r\n", "1.0,2e0\n+3,0.4E1\n"}) {
    EXPECT_EQ(csv_of(text, kNoHeader).values, expected) << text;
  }
}

TEST(Csv, ASeparatorIsGiven) {
  EXPECT_EQ(csv_of("\"a,b\";c\n1;2\n", {';', Header::present}).columns, (Names{"a,b", "c"}));
  EXPECT_EQ(csv_of("a;b,c\n1,2\n").columns, (Names{"a;b", "c"}));
  EXPECT_EQ(csv_of("1\t2\n3\t4\n", {'\t', Header::absent}).values, (Values{1, 2, 3, 4}));
  EXPECT_EQ(mistake_in("a;b\n1;2\n"),
            "t.csv:2: column 'a;b': '1;2' is not a number | data.separator is the character "
            "between cells");
}

TEST(Csv, AHeaderThatIsAllNumbersOrARowOfNamesIsNotTakenForTheOther) {
  EXPECT_EQ(mistake_in("1990,1991\n5,6\n"),
            "t.csv:1: the header is all numbers | data.header = false reads the first row as "
            "numbers, too");
  EXPECT_EQ(csv_of("id,1990\n5,6\n").columns, (Names{"id", "1990"}));
  EXPECT_EQ(csv_of("1st,2nd\n5,6\n").columns, (Names{"1st", "2nd"}));
  EXPECT_EQ(mistake_in("a,b\n5,6\n", kNoHeader),
            "t.csv:1: column '1': 'a' is not a number | data.header = true takes the first row for "
            "names");
}

TEST(Csv, QuotedCellsMaySpanLinesAndLinesAreStillCounted) {
  const auto table = csv_of("\"a\nname\",b\r\n1,2\r\n3,4\n");
  EXPECT_EQ(table.columns, (Names{"a\nname", "b"}));
  EXPECT_EQ(table.values, (Values{1, 2, 3, 4}));
  EXPECT_EQ(table.lines, (std::vector<std::int64_t>{3, 4}));
}

TEST(Csv, CellsAndLineEndsMayLieAcrossTwoPieces) {
  const std::string wide(70'000, 'x');  // more than is read at once
  for (const char* end : {"\n", "\r\n"}) {
    for (std::size_t length = 65'530; length < 65'545; ++length) {
      const std::string name = wide.substr(0, length);
      const auto table = csv_of(name + end + "12.5" + end + "7");
      EXPECT_EQ(table.columns, Names{name});
      EXPECT_EQ(table.values, (Values{12.5, 7}));
      EXPECT_EQ(csv_of("\"" + name + "\"\"\"" + end + "1").columns, Names{name + "\""});
    }
  }
}

TEST(Csv, EveryMistakeIsNamedWithItsPlace) {
  EXPECT_EQ(mistake_in("a,b\n1,2\n3,x\n"), "t.csv:3: column 'b': 'x' is not a number");
  EXPECT_EQ(mistake_in("a,b\n1,2\n,4\n"), "t.csv:3: column 'a' is empty");
  EXPECT_EQ(mistake_in("a,b\n1,\n"), "t.csv:2: column 'b' is empty");
  EXPECT_EQ(mistake_in("a,b\n3,nan\n"), "t.csv:2: column 'b': 'nan' is no finite number");
  EXPECT_EQ(mistake_in("a,b\n3,-INF\n"), "t.csv:2: column 'b': '-INF' is no finite number");
  EXPECT_EQ(mistake_in("a,b\n3,1e999\n"),
            "t.csv:2: column 'b': '1e999' is beyond the range of numbers");
  EXPECT_EQ(mistake_in("a,b\n3\n"), "t.csv:2: has 1 cell, the first row has 2");
  EXPECT_EQ(mistake_in("a,b\n3,4,5,6\n"), "t.csv:2: has 4 cells, the first row has 2");
  EXPECT_EQ(mistake_in("a,b\n3,4,\n"), "t.csv:2: has 3 cells, the first row has 2");
  EXPECT_EQ(mistake_in("1,2\n\n3,4\n", kNoHeader), "t.csv:2: has 1 cell, the first row has 2");
  EXPECT_EQ(mistake_in("a\n1\n\n"), "t.csv:3: column 'a' is empty");
  EXPECT_EQ(mistake_in("1;2\n3,5;4\n", {';', Header::absent}),
            "t.csv:2: column '1': '3,5' is not a number | decimals are written with a point");
  EXPECT_EQ(mistake_in("a,b\n1, 2\n"),
            "t.csv:2: column 'b': ' 2' is not a number | blanks belong to a cell: remove them");
  EXPECT_EQ(mistake_in("a,b\n1,2 \n"),
            "t.csv:2: column 'b': '2 ' is not a number | blanks belong to a cell: remove them");
  EXPECT_EQ(mistake_in("a,b\n1,2e\n"), "t.csv:2: column 'b': '2e' is not a number");
  EXPECT_EQ(mistake_in("1;2\nx,5;4\n", {';', Header::absent}),
            "t.csv:2: column '1': 'x,5' is not a number");
  EXPECT_EQ(mistake_in("a,b\n1,1e999x\n"), "t.csv:2: column 'b': '1e999x' is not a number");
  EXPECT_EQ(mistake_in("a,b\n1,2,\"3\"x\n"),
            "t.csv:2: column '3': after the closing quote comes more text");
  EXPECT_EQ(mistake_in("a,b\n\"3,4\n"), "t.csv:2: a quote that is never closed");
  EXPECT_EQ(mistake_in("a,b\n\"3\"x,4\n"),
            "t.csv:2: column 'a': after the closing quote comes more text");
  EXPECT_EQ(mistake_in("a,b\n3,4\"5\"\n"),
            "t.csv:2: column 'b': a quote in a cell that does not begin with one");
  EXPECT_EQ(mistake_in("a,\"b\"c\n"),
            "t.csv:1: column '2': after the closing quote comes more text");
  EXPECT_EQ(mistake_in("a,b,a\n1,2,3\n"), "t.csv:1: two columns are called 'a'");
  EXPECT_EQ(mistake_in("a,b\n"), "t.csv: holds a header and no rows");
  EXPECT_EQ(mistake_in(""), "t.csv: holds no rows");
  EXPECT_EQ(mistake_in("\xef\xbb\xbf"), "t.csv: holds no rows");
  EXPECT_EQ(mistake_in(std::string("a,b\n1,\0", 7)),
            "t.csv:2: holds a zero byte | it is to be text in UTF-8");
  for (const char* cell : {"0x10", "1_000", "1 000", "1e", "--1", "+-1", "1d3", "\"1\"\"\"", "€"}) {
    EXPECT_NE(mistake_in(std::string("a,b\n3,") + cell + "\n").find("is not a number"),
              std::string::npos)
        << cell;
  }
}

TEST(Csv, AMessageShowsAsMuchOfACellAsItNeedsAndOnlyWhatCanBeShown) {
  const std::string forty(40, 'x');
  EXPECT_EQ(mistake_in("a\n" + forty + "\n"),
            "t.csv:2: column 'a': '" + forty + "' is not a number");
  EXPECT_EQ(mistake_in("a\n" + forty + "y\n"),
            "t.csv:2: column 'a': '" + forty + "…' is not a number");
  EXPECT_EQ(
      mistake_in("a\nx\ty z\x1f\n"),
      "t.csv:2: column 'a': 'x\\x09y z\\x1f' is not a number | data.separator is the character "
      "between cells");
}

TEST(Csv, NumbersAreReadToTheLastBitInAnyLocale) {
  std::setlocale(LC_ALL, "de_DE.UTF-8");
  const auto table = csv_of("0.1,1e-300,123456789.123456789,2.2250738585072014e-308\n", kNoHeader);
  std::setlocale(LC_ALL, "C");
  EXPECT_EQ(table.values, (Values{0.1, 1e-300, 123456789.123456789, 2.2250738585072014e-308}));
}

TEST(Csv, FilesArePlainOrGzip) {
  const dtool::tests::TemporaryFolder folder;
  const std::string text = hundred_rows();
  const std::string plain = folder.write("plain.csv", text);
  const std::string packed = folder.path() / "packed.csv.gz";
  gzFile stream = gzopen(packed.c_str(), "wb");
  gzwrite(stream, text.data(), static_cast<unsigned>(text.size()));
  gzclose(stream);
  EXPECT_EQ(content_of(read_csv(plain, {})).values, content_of(read_csv(packed, {})).values);
  EXPECT_EQ(read_csv(plain, {}).rows(), 100);
  std::filesystem::resize_file(packed, 40);
  EXPECT_EQ(mistake_by([&] { read_csv(packed, {}); }), packed + ": truncated gzip data");
  EXPECT_THROW(read_csv("nowhere.csv", {}), UsageError);
  EXPECT_THROW(read_csv(folder.path(), {}), UsageError);
}

TEST(Csv, AnotherTextAtTheSecondReadingIsRefused) {
  const std::string text = "a,b\n1,2\n3,4\n";
  for (const std::string& other :
       {text + "5,6\n", std::string("a,b\n1,2\n"), std::string("a,c\n1,2\n3,4\n")}) {
    int readings = 0;
    const CsvTable table("t.csv",
                         [&]() -> CsvText {
                           return [left = readings++ == 0 ? text : other](
                                      char* into, std::size_t size) mutable {
                             const auto part = left.copy(into, size);
                             left.erase(0, part);
                             return part;
                           };
                         },
                         {});
    std::int64_t given = 0;
    EXPECT_EQ(mistake_by([&] { table.read([&](const CsvRow&) { ++given; }); }),
              was_changed("t.csv"))
        << other;
    EXPECT_LE(given, table.rows()) << "its user has room for so many";
  }
}

TEST(Csv, AFileThatChangesWhileItIsReadIsRefused) {
  const dtool::tests::TemporaryFolder folder;
  for (const char* text :
       {"a,b\n1,2\n", "a,b\n1,2\n3,4\n5,6\n", "b,a\n1,2\n3,4\n", "a,b\n1,2\n3,5\n"}) {
    const std::string file = folder.write("t.csv", "a,b\n1,2\n3,4\n");
    const CsvTable table = read_csv(file, {});
    EXPECT_EQ(content_of(table).values, (Values{1, 2, 3, 4}));
    write_into(file, text);
    EXPECT_EQ(mistake_by([&] { content_of(table); }), was_changed(file)) << text;
  }
}

TEST(Csv, AFileThatChangesWithinOnePassIsRefused) {
  const dtool::tests::TemporaryFolder folder;
  const std::string file = folder.write("t.csv", "a,b\n1,2\n3,4\n");
  const CsvTable table = read_csv(file, {});
  const auto change = [&](const CsvRow& row) {
    if (row.number == 0) write_into(file, "a,b\n1,2\n3,5\n");
  };
  EXPECT_EQ(mistake_by([&] { table.read(change); }), was_changed(file));
}

TEST(Csv, AFileThatIsRenamedOverItIsNotRead) {
  const dtool::tests::TemporaryFolder folder;
  const std::string file = folder.write("t.csv", "a,b\n1,2\n3,4\n");
  const CsvTable table = read_csv(file, {});
  std::filesystem::rename(folder.write("new.csv", "a,b\n5,6\n7,8\n"), file);
  EXPECT_EQ(content_of(table).values, (Values{1, 2, 3, 4}));
  EXPECT_EQ(content_of(read_csv(file, {})).values, (Values{5, 6, 7, 8}));
}

TEST(CsvData, TheLastColumnIsTheTargetUnlessOthersAreNamed) {
  const auto last = sets_of("a,b,c\n1,2,3\n4,5,6\n", {.test_share = .5}, TargetKind::values);
  EXPECT_EQ(last.inputs, (Names{"a", "b"}));
  EXPECT_EQ(last.targets, Names{"c"});
  const auto named =
      sets_of("a,b,c\n1,2,3\n4,5,6\n", {.inputs = {"b"}, .targets = {"c", "a"}, .test_share = .5},
              TargetKind::values);
  EXPECT_EQ(named.inputs, Names{"b"});
  EXPECT_EQ(named.targets, (Names{"c", "a"}));
  EXPECT_EQ(named.train.values.size(), 2u);
  EXPECT_EQ(named.train.values[0], named.train.values[1] + 2);
  const auto none = sets_of("a,b\n1,2\n4,5\n", {.test_share = .5}, TargetKind::none);
  EXPECT_EQ(none.inputs, (Names{"a", "b"}));
  EXPECT_TRUE(none.targets.empty());
}

TEST(CsvData, ColumnsThatAreNotThereAreNamed) {
  const auto refused = [](const CsvSettings& settings, TargetKind kind = TargetKind::values) {
    return mistake_by([&] { sets_of("height,weight,age\n1,2,3\n4,5,6\n", settings, kind); });
  };
  EXPECT_EQ(refused({.targets = {"hight"}}),
            "data.targets: t.csv has no column 'hight' | its columns are height, weight, age");
  EXPECT_EQ(refused({.inputs = {"zebra"}}),
            "data.inputs: t.csv has no column 'zebra' | its columns are height, weight, age");
  EXPECT_EQ(refused({.inputs = {"age"}}), "data.inputs: column 'age' is a target");
  EXPECT_EQ(mistake_by([] { sets_of("height\n1\n2\n", {}, TargetKind::values); }),
            "t.csv: has 1 column, which leaves no input");
  const std::string eight = "1,2,3,4,5,6,7,8\n";
  const auto in_table = [&](const std::string& names, const std::string& row) {
    return mistake_by(
        [&] { sets_of(names + "\n" + row, {.inputs = {"hight"}}, TargetKind::values); });
  };
  EXPECT_EQ(
      in_table("height,b,c,d,e,f,g,h", eight),
      "data.inputs: t.csv has no column 'hight' | its columns are height, b, c, d, e, f, g, h");
  EXPECT_EQ(in_table("height,b,c,d,e,f,g,h,i", "0," + eight),
            "data.inputs: t.csv has no column 'hight' | did you mean 'height'?");
  EXPECT_EQ(in_table("a,b,c,d,e,f,g,h,i", "0," + eight),
            "data.inputs: t.csv has no column 'hight'");
  EXPECT_EQ(refused({.inputs = {"height", "height"}}),
            "data.inputs: column 'height' is named twice");
  EXPECT_EQ(refused({.targets = {"height", "age"}}, TargetKind::classes),
            "data.targets: a class is one column");
  EXPECT_EQ(refused({.targets = {"height", "age", "weight"}}),
            "t.csv: has 3 columns, which leaves no input");
}

TEST(CsvData, ClassesAreWholeNumbersFromZero) {
  const auto sets = sets_of(hundred_rows(), {.test_share = .1}, TargetKind::classes);
  EXPECT_EQ(sets.classes, 3);
  for (std::size_t i = 0; i < sets.train.classes.size(); ++i) {
    EXPECT_EQ(sets.train.classes[i], static_cast<std::int64_t>(sets.train.inputs[2 * i]) % 3);
  }
  for (const char* wrong : {"-1", "0.5", "1e9"}) {
    const std::string text = std::string("a,b\n1,0\n2,") + wrong + "\n";
    EXPECT_NE(mistake_by([&] {
                sets_of(text, {.test_share = .5}, TargetKind::classes);
              }).find("t.csv:3: column 'b': "),
              std::string::npos)
        << wrong;
  }
}

TEST(CsvData, TheHighestClassIsOneLessThanAMillionAndABit) {
  const auto sets = [](const char* highest) {
    return make_csv_sets(table_of(std::string("a,b\n1,") + highest + "\n"),
                         parse_csv("test.csv", "a,b\n1,0\n", {}), {}, TargetKind::classes);
  };
  EXPECT_EQ(sets("1048575").classes, 1048576);
  EXPECT_EQ(mistake_by([&] { sets("1048576"); }),
            "t.csv:2: column 'b': 1048576 is not a class: they are whole numbers from 0 to 1048575 "
            "| numbers to predict are for workload = \"regression\"");
}

TEST(CsvData, ATestRowOfAClassThatTrainingNeverSawIsNamed) {
  const auto train = table_of("a,b\n1,0\n2,1\n");
  const auto first = parse_csv("test.csv", "a,b\n1,7\n2,1\n", {});
  EXPECT_EQ(mistake_by([&] { make_csv_sets(train, first, {}, TargetKind::classes); }),
            "test.csv:2: column 'b': class 7 is in the test, but no training row is above 1");
  const auto test = parse_csv("test.csv", "a,b\n1,0\n2,2\n", {});
  EXPECT_EQ(mistake_by([&] { make_csv_sets(train, test, {}, TargetKind::classes); }),
            "test.csv:3: column 'b': class 2 is in the test, but no training row is above 1");
}

TEST(CsvData, ADrawnTestRowOfAClassThatTrainingNeverSawIsNamedToo) {
  std::string text = "a,b\n";
  for (int i = 0; i < 20; ++i)
    text += "1," + std::to_string(19 - i) + "\n";  // the highest is drawn or not
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto mistake = mistake_by(
        [&] { sets_of(text, {.test_share = .3, .split_seed = seed}, TargetKind::classes); });
    if (mistake == "no mistake") continue;
    const auto line = std::stoi(mistake.substr(6));
    EXPECT_TRUE(mistake.starts_with("t.csv:" + std::to_string(line) + ": column 'b': class " +
                                    std::to_string(21 - line) + " is in the test, but no "))
        << mistake;
    return;
  }
  ADD_FAILURE() << "no seed draws the highest class";
}

TEST(CsvData, TheTestsColumnsAreFoundByName) {
  const auto train = table_of("a,b,c\n1,2,3\n");
  const auto test = parse_csv("test.csv", "c,extra,b,a\n30,0,20,10\n", {});
  const auto sets = make_csv_sets(train, test, {}, TargetKind::values);
  EXPECT_EQ(sets.test.inputs, (std::pmr::vector<float>{10, 20}));
  EXPECT_EQ(sets.test.values, (std::pmr::vector<float>{30}));
  EXPECT_EQ(sets.train.rows, 1);
  const auto other = parse_csv("test.csv", "a,b\n1,2\n", {});
  EXPECT_EQ(mistake_by([&] { make_csv_sets(train, other, {}, TargetKind::values); }),
            "data.test_file: test.csv has no column 'c' | its columns are a, b");
}

TEST(CsvData, TheDrawnTestIsItsShareEachRowOnceAndTheSameForASeed) {
  const auto draw = [](std::uint64_t seed) {
    return sets_of(hundred_rows(), {.test_share = .2, .split_seed = seed}, TargetKind::classes);
  };
  const auto sets = draw(7);
  EXPECT_EQ(sets.test.rows, 20);
  EXPECT_EQ(sets.train.rows, 80);
  std::set<float> seen;
  for (const auto* set : {&sets.train, &sets.test}) {
    for (std::size_t i = 0; i < set->inputs.size(); i += 2) seen.insert(set->inputs[i]);
  }
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_EQ(draw(7).test.inputs, sets.test.inputs);
  std::set<float> drawn;
  for (std::size_t i = 0; i < sets.test.inputs.size(); i += 2) drawn.insert(sets.test.inputs[i]);
  const auto order = training_order(100, 0, 1, 7, 0);
  EXPECT_EQ(drawn, std::set<float>(order.begin(), order.begin() + 20));
  EXPECT_NE(draw(8).test.inputs, sets.test.inputs);
  EXPECT_EQ(sets_of("a,b\n1,2\n3,4\n", {.test_share = .01}, TargetKind::values).test.rows, 1);
  EXPECT_EQ(sets_of("a,b\n1,2\n3,4\n", {.test_share = .99}, TargetKind::values).train.rows, 1);
  EXPECT_EQ(mistake_by([] { sets_of("a,b\n1,2\n", {.test_share = .5}, TargetKind::values); }),
            "t.csv: has one row, too few to train and to test");
}

TEST(CsvData, StandardisedInputsHaveMeanZeroAndDeviationOneOverTheTrainingRows) {
  const auto train = table_of("a,b,c\n1000000001,7,1\n1000000002,7,2\n1000000006,7,3\n");
  const auto test = parse_csv("test.csv", "a,b,c\n1000000003,9,1\n", {});
  const auto sets =
      make_csv_sets(train, test, {.standardise = Standardise::yes}, TargetKind::values);
  const double deviation = std::sqrt(14.0 / 3);
  EXPECT_NEAR(sets.means[0], 1000000003, 1e-6);
  EXPECT_NEAR(sets.deviations[0], deviation, 1e-6);
  EXPECT_EQ(sets.deviations[1], 1);
  EXPECT_NEAR(sets.train.inputs[0], -2 / deviation, 1e-5);
  EXPECT_NEAR(sets.train.inputs[4], 3 / deviation, 1e-5);
  EXPECT_EQ(sets.train.inputs[1], 0);
  EXPECT_NEAR(sets.test.inputs[0], 0, 1e-5);
  EXPECT_EQ(sets.test.inputs[1], 2);
  EXPECT_EQ(sets.train.values, (std::pmr::vector<float>{1, 2, 3}));
}

TEST(CsvData, SmallNumbersAreStandardisedAsLargeOnesAreAndDrawnTestRowsDoNotCount) {
  const auto tiny = make_csv_sets(table_of("a,b\n1e-20,1\n3e-20,2\n"),
                                  parse_csv("test.csv", "a,b\n1e-20,1\n", {}),
                                  {.standardise = Standardise::yes}, TargetKind::values);
  EXPECT_DOUBLE_EQ(tiny.means[0], 2e-20);
  EXPECT_DOUBLE_EQ(tiny.deviations[0], 1e-20);
  EXPECT_EQ(tiny.train.inputs, (std::pmr::vector<float>{-1, 1}));
  const auto drawn = sets_of(hundred_rows(), {.test_share = .5, .standardise = Standardise::yes},
                             TargetKind::none);
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < drawn.train.inputs.size(); i += 3) {
    sum += drawn.train.inputs[i];
    squares += std::pow(drawn.train.inputs[i], 2);
  }
  EXPECT_NEAR(sum / 50, 0, 1e-5);
  EXPECT_NEAR(squares / 50, 1, 1e-5);
}

TEST(CsvData, NoMemoryIsTakenThatIsNotFilled) {
  for (const auto kind : {TargetKind::classes, TargetKind::values}) {
    const auto sets = sets_of(hundred_rows(), {.test_share = .33}, kind);
    for (const CsvSet* each : {&sets.train, &sets.test}) {
      EXPECT_EQ(each->inputs.capacity(), each->inputs.size());
      EXPECT_EQ(each->values.capacity(), each->values.size());
      EXPECT_EQ(each->classes.capacity(), each->classes.size());
    }
  }
}

TEST(CsvData, ANumberTooLargeForAFloatIsNamed) {
  EXPECT_EQ(mistake_by([] {
              sets_of("a,b\n1,2\n1e300,4\n2,3\n", {.test_share = .3}, TargetKind::values);
            }),
            "t.csv:3: column 'a': 1e+300 is too large to compute with");
  const auto largest = sets_of("a,b\n3.4028234663852886e38,2\n-3.4028234663852886e38,4\n",
                               {.test_share = .5}, TargetKind::values);
  EXPECT_EQ(std::abs(largest.test.inputs[0]), std::numeric_limits<float>::max());
}
