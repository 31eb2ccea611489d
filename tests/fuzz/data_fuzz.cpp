// SPDX-License-Identifier: MIT
// CSV text and IDX files of any content are read whole or refused with the file's name.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "tests/fuzz/mutate.h"
#include "tests/trainer/csv_text.h"
#include "tests/unit/temporary_folder.h"
#include "trainer/data/data_offer.h"
#include "trainer/data/idx.h"
#include "trainer/settings/usage_error.h"

namespace dtool::fuzz {
namespace {

using trainer::UsageError;

TEST(Fuzz, CsvIsReadOrRefusedWithItsPlace) {
  Mutator mutator({"a,b,c\n1,2,3\n4,5,6\n", "1,2\r\n3,4\r\n", "\"x y\",\"z\"\n\"1\",-2e3\n5,+6\n",
                   "\xef\xbb\xbf"
                   "1,2,3\n4,5,6"},
                  {",", ";", "\t", "\n", "\r", "\r\n", "\"", "\"\"", " ", "nan", "inf", "1e999",
                   "-", "+", ".", "0", "1.5e-3", "NA", "\xef\xbb\xbf"});
  const Tally tally = feed<UsageError>(mutator, 20'000, [&](const std::string& text) {
    try {
      const auto header = text.size() % 2 == 0 ? trainer::Header::present : trainer::Header::absent;
      const trainer::CsvTable table = trainer::parse_csv("t.csv", text, {',', header});
      EXPECT_GT(table.rows(), 0) << text;
      std::int64_t rows = 0;
      std::int64_t line = 0;
      table.read([&](const trainer::CsvRow& row) {
        EXPECT_EQ(row.number, rows++) << text;
        EXPECT_EQ(row.at.size(), table.columns().size()) << text;
        for (const double value : row.at) EXPECT_TRUE(std::isfinite(value)) << text;
        EXPECT_LT(std::exchange(line, row.line), row.line) << text;
      });
      EXPECT_EQ(rows, table.rows()) << text;
    } catch (const UsageError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("t.csv:")) << error.what();
      throw;
    }
  });
  EXPECT_GT(tally.taken, 1'000);
  EXPECT_GT(tally.refused, 1'000);
}

TEST(Fuzz, IdxFilesAreReadOrRefusedWithTheirName) {
  using namespace std::string_literals;
  const std::string images =
      "\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x02"
      "abcdefgh"s;
  const std::string labels = "\0\0\x08\x01\0\0\0\x05\1\2\3\4\5"s;
  const std::string packed =  // `labels`, by gzip
      "\x1f\x8b\x08\0\0\0\0\0\2\3\x63\x60\xe0\x60\x64\x60\x60\x60\x65\x64\x62\x66\x61\x05\0"
      "\xa3\x33\x91\x8b\x0d\0\0\0"s;
  Mutator mutator({images, labels, packed},
                  {"\0\0\x08\x01"s, "\0\0\x0d\x02"s, "\xff\xff\xff\xff"s, "\0\0\0\0"s, "\0"s,
                   "\x1f\x8b\x08"s, "\x7f\xff\xff\xff"s, "\0\0\0\1"s});
  const tests::TemporaryFolder folder;
  const Tally tally = feed<UsageError>(mutator, 10'000, [&](const std::string& text) {
    std::filesystem::remove(folder.path() / "data");  // ext4 waits for the disk on overwriting
    const std::filesystem::path file = folder.write("data", text);
    try {
      const trainer::IdxArray array = trainer::read_idx(file);
      std::int64_t size = 1;
      for (const auto each : array.shape) size *= each;
      EXPECT_EQ(static_cast<std::int64_t>(array.values.size()), size);
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(file.string()), std::string::npos) << error.what();
      throw;
    }
  });
  EXPECT_GT(tally.taken, 200);
  EXPECT_GT(tally.refused, 1'000);
}

TEST(Fuzz, OffersOfDataFitTheirMemoryOrAreRefused) {
  Mutator mutator(
      {R"({"outputs":10,"shape":[1,2],"tensors":[)"
       R"({"name":"/proc/7/fd/9","nonce":"01","numbers":"uint8","shape":[60,2],"size":120},)"
       R"({"name":"/proc/7/fd/10","nonce":"45","numbers":"int64","shape":[60],"size":480},)"
       R"({"name":"/proc/7/fd/11","nonce":"67","numbers":"uint8","shape":[10,2],"size":20},)"
       R"({"name":"/proc/7/fd/12","nonce":"89","numbers":"float32","shape":[10],"size":40}]})"},
      {"[", ",", "\"", "0", "-1", "4294967296", "9223372036854775807", "float32", "int64", "uint8",
       "[1,1]"});
  int taken = 0;
  int refused = 0;
  feed(mutator, 20'000, [&](const std::string& text) {
    const auto offer = trainer::parse_offer(text);
    ++(offer ? taken : refused);
    if (!offer) return;
    for (const auto& each : offer->tensors) {
      EXPECT_FALSE(each.shape.empty()) << text;
      auto bytes = static_cast<double>(trainer::size_of(each.numbers));
      for (const auto size : each.shape) {
        EXPECT_GT(size, 0) << text;
        bytes *= static_cast<double>(size);
      }
      EXPECT_LE(bytes, static_cast<double>(each.place.size)) << text;
    }
  });
  EXPECT_GT(taken, 1'000);
  EXPECT_GT(refused, 1'000);
}

}  // namespace
}  // namespace dtool::fuzz
