// SPDX-License-Identifier: MIT
// A checkpoint's header of any content is read, and then every byte of the file is in one tensor,
// or it is refused.
#include <gtest/gtest.h>

#include <set>

#include "tests/fuzz/mutate.h"
#include "trainer/training/safetensors.h"

namespace dtool::fuzz {
namespace {

using trainer::safetensors::Entry;
using trainer::safetensors::Header;

/// `text` with its length before it and `data` bytes after it.
std::string file_of(const std::string& text, std::size_t data) {
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 4; ++i) file[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  return file + text + std::string(data, 'x');
}

void expect_sound(const Header& header, std::uint64_t file_size, const std::string& text) {
  std::uint64_t at = 0;
  std::set<std::string> names;
  for (const Entry& each : header.entries) {
    EXPECT_EQ(each.begin, at) << text;
    EXPECT_LE(each.begin, each.end) << text;
    EXPECT_TRUE(names.insert(each.name).second) << text;
    for (const auto length : each.shape) EXPECT_GE(length, 0) << text;
    at = each.end;
  }
  EXPECT_EQ(header.size + at, file_size) << text;
  // What was read can be written, and read again.
  const auto bytes = trainer::safetensors::header_text(header.entries, header.metadata);
  const Header again = trainer::safetensors::parse_header(bytes, bytes.size() + at);
  EXPECT_EQ(again.entries.size(), header.entries.size()) << text;
  EXPECT_EQ(again.metadata, header.metadata) << text;
}

const std::vector<std::string> kSeeds = {
    R"({"a":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[],"data_offsets":[4,8]}})",
    R"({"__metadata__":{"seed":"7","best_score":"nan"},"b":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})",
    R"({"a":{"dtype":"BF16","shape":[0,3],"data_offsets":[0,0]},"b":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}   )"};
const std::vector<std::string> kTokens = {"{",
                                          "}",
                                          "[",
                                          "]",
                                          ",",
                                          ":",
                                          "\"",
                                          "\"a\"",
                                          "\"b\"",
                                          "\"dtype\"",
                                          "\"shape\"",
                                          "0",
                                          "4",
                                          "8",
                                          "-1",
                                          "1e9",
                                          "18446744073709551615",
                                          "9223372036854775807",
                                          "null",
                                          "true",
                                          "\"F64\"",
                                          "\"__metadata__\"",
                                          "\\u0000",
                                          " ",
                                          "\n",
                                          "[[[[",
                                          "\xff"};
/// The text alone, with a right length: most faults are then in the JSON.
TEST(Fuzz, ACheckpointsHeaderIsReadOrRefused) {
  Mutator mutator(kSeeds, kTokens);
  const Tally tally =
      feed<trainer::safetensors::Malformed>(mutator, 20'000, [](const std::string& text) {
        const std::string file = file_of(text, 8);
        expect_sound(trainer::safetensors::parse_header(file, file.size()), file.size(), text);
      });
  EXPECT_GT(tally.taken, 1'000);
  EXPECT_GT(tally.refused, 1'000);
}

/// Cut anywhere, with a length that says anything.
TEST(Fuzz, ACheckpointIsReadOrRefused) {
  std::vector<std::string> files;
  for (const std::string& each : kSeeds) files.push_back(file_of(each, 8));
  Mutator whole(files, kTokens);
  const Tally of_files =
      feed<trainer::safetensors::Malformed>(whole, 10'000, [](const std::string& file) {
        expect_sound(trainer::safetensors::parse_header(file, file.size()), file.size(), file);
      });
  EXPECT_GT(of_files.taken, 500);
  EXPECT_GT(of_files.refused, 500);
}

}  // namespace
}  // namespace dtool::fuzz
