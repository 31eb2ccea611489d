// SPDX-License-Identifier: MIT
// What is written is read back, and what is no such header is refused with its reason.
#include "trainer/training/safetensors.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

namespace dtool::trainer::safetensors {
namespace {

/// The bytes of a header with this JSON.
std::string with_length(const std::string& text) {
  std::string length(kLengthBytes, '\0');
  for (std::size_t i = 0; i < 4; ++i) length[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  return length + text;
}

std::string refusal(const std::string& bytes, std::uint64_t file_size) {
  try {
    parse_header(bytes, file_size);
  } catch (const Malformed& problem) {
    return problem.what();
  }
  return "taken";
}

/// The refusal of a file whose header has this JSON, and `data` bytes after it.
std::string refusal_of(const std::string& text, std::uint64_t data) {
  const std::string bytes = with_length(text);
  return refusal(bytes, bytes.size() + data);
}

TEST(Safetensors, AHeaderIsReadAsItWasWritten) {
  std::vector<Entry> entries;
  append(entries, "model.fc1.weight", "F32", {2, 3});
  append(entries, "others.empty", "U8", {0});
  append(entries, "optimizer.\"first\"", "F64", {});
  append(entries, "a", "I64", {5});
  const Metadata metadata = {{"seed", "18446744073709551615"}, {"best_score", "nan"}};
  const std::string bytes = header_text(entries, metadata);
  EXPECT_EQ(bytes.size() % 8, 0U);
  EXPECT_EQ(bytes, header_text(entries, metadata));

  const Header header = parse_header(bytes, bytes.size() + 72);
  EXPECT_EQ(header.size, bytes.size());
  EXPECT_EQ(header_size(bytes.substr(0, 8), bytes.size() + 72), bytes.size());
  EXPECT_EQ(header.metadata, metadata);
  ASSERT_EQ(header.entries.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(header.entries[i].name, entries[i].name);
    EXPECT_EQ(header.entries[i].dtype, entries[i].dtype);
    EXPECT_EQ(header.entries[i].shape, entries[i].shape);
    EXPECT_EQ(header.entries[i].begin, entries[i].begin);
    EXPECT_EQ(header.entries[i].end, entries[i].end);
  }
  EXPECT_EQ(header.entries[3].end, 72U);
}

TEST(Safetensors, EveryTypeHasItsSize) {
  const std::pair<const char*, std::uint64_t> sizes[] = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"U16", 2}, {"I16", 2}, {"F16", 2}, {"BF16", 2},
      {"U32", 4},  {"I32", 4}, {"F32", 4}, {"U64", 8}, {"I64", 8}, {"F64", 8}};
  for (const auto& [dtype, bytes] : sizes) {
    std::vector<Entry> entries;
    append(entries, "a", dtype, {3, 5});
    EXPECT_EQ(entries[0].end, 15 * bytes) << dtype;
  }
  std::vector<Entry> entries;
  append(entries, "a", "U8", {std::numeric_limits<std::int64_t>::max()});
  EXPECT_EQ(entries[0].end, 9'223'372'036'854'775'807U);
}

TEST(Safetensors, AHeaderOfAnyLengthIsFilledUpToEightBytesAndNoFurther) {
  for (const std::size_t more : {0, 1, 2, 3, 4, 5, 6, 7, 300, 70'000}) {
    const Metadata metadata = {{"a", std::string(more, 'x')}};
    const std::string bytes = header_text({}, metadata);
    EXPECT_EQ(bytes.size() % 8, 0U) << more;
    EXPECT_LT(bytes.size() - 1 - bytes.find_last_not_of(' '), 8U) << more;
    EXPECT_EQ(parse_header(bytes, bytes.size()).metadata, metadata);
  }
}

TEST(Safetensors, AHeaderOfOtherProgramsIsRead) {
  const std::string text = R"({"b":{"data_offsets":[4,6],"dtype":"BF16","shape":[1]},)"
                           R"("a":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}}   )";
  const Header header = parse_header(with_length(text), 8 + text.size() + 6);
  ASSERT_EQ(header.entries.size(), 2U);
  EXPECT_EQ(header.entries[0].name, "a");
  EXPECT_EQ(header.entries[1].name, "b");
  EXPECT_TRUE(header.metadata.empty());
}

TEST(Safetensors, AFileThatIsTooShortOrHasNoLengthIsRefused) {
  EXPECT_EQ(refusal("", 0), "it is too short");
  EXPECT_EQ(refusal(std::string(7, '\0'), 7), "it is too short");
  EXPECT_EQ(refusal(std::string(8, '\xff'), 1ULL << 40),
            "its first bytes are no length of a header");
  EXPECT_EQ(refusal(with_length(std::string(20, ' ')), 27), "it ends within its header");
  EXPECT_EQ(refusal(with_length(""), 8), "its header does not begin with '{'");
  EXPECT_EQ(refusal("abc", 100), "it is too short");
  EXPECT_EQ(refusal(with_length(""), 7), "it is too short");
  EXPECT_EQ(refusal(with_length("{}").substr(0, 9), 10), "it ends within its header");
  EXPECT_EQ(refusal_of("{}", 0), "taken");
}

TEST(Safetensors, AHeaderHasAHundredMillionBytesAtMost) {
  const auto start = [](std::uint64_t length) {
    std::string bytes;
    for (unsigned i = 0; i < 8; ++i) bytes += static_cast<char>(length >> 8 * i & 0xff);
    return bytes;
  };
  EXPECT_EQ(header_size(start(100'000'000), 1ULL << 40), 100'000'008U);
  EXPECT_THROW(header_size(start(100'000'001), 1ULL << 40), Malformed);
}

TEST(Safetensors, AHeaderThatIsNoSuchJsonIsRefused) {
  EXPECT_EQ(refusal_of("[]", 0), "its header does not begin with '{'");
  EXPECT_EQ(refusal_of("{", 0), "its header is no JSON");
  EXPECT_EQ(refusal_of("{} x", 0), "its header is no JSON");
  EXPECT_EQ(refusal_of("{\"\xff\":1}", 0), "its header is no JSON");
  EXPECT_EQ(refusal_of(R"({"a":)" + std::string(1'000'000, '['), 0),
            "its header is nested too deeply");
  EXPECT_EQ(refusal_of(R"({"a":1})", 0), "'a' is not described by dtype, shape and data_offsets");
  EXPECT_EQ(refusal_of(R"({"a":{"dtype":"U8","shape":[],"size":1}})", 0),
            "'a' has no data_offsets");
  EXPECT_EQ(refusal_of(R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0,1],"more":1}})", 1),
            "'a' is not described by dtype, shape and data_offsets");
  EXPECT_EQ(refusal_of(R"({"__metadata__":[]})", 0), "its metadata is no table");
  EXPECT_EQ(refusal_of(R"({"__metadata__":{"a":1}})", 0), "its metadata 'a' is no text");
}

TEST(Safetensors, NamesThatComeTwiceAreRefused) {
  const std::string one = R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_EQ(refusal_of(R"({"a":)" + one + R"(,"a":)" + one + "}", 1), "its header has 'a' twice");
  EXPECT_EQ(refusal_of(R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1),
            "its header has 'dtype' twice");
  EXPECT_EQ(refusal_of(R"({"__metadata__":{"a":"","a":""}})", 0), "its header has 'a' twice");
  EXPECT_EQ(
      refusal_of(R"({"a":)" + one + R"(,"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2),
      "taken");
}

TEST(Safetensors, TensorsOfUnknownTypesOrWithOtherNumbersAreRefused) {
  const auto tensor = [](const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
    return R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets +
           "}}";
  };
  EXPECT_EQ(refusal_of(tensor("\"F31\"", "[1]", "[0,4]"), 4), "'a' is of an unknown type");
  EXPECT_EQ(refusal_of(tensor("4", "[1]", "[0,4]"), 4), "'a' is of an unknown type");
  EXPECT_EQ(refusal_of(tensor("\"\"", "[1]", "[0,0]"), 0), "'a' is of an unknown type");
  for (const std::string each :
       {"[-1]", "[1.0]", "[\"1\"]", "[1e3]", "[99999999999999999999]", "[null]"}) {
    EXPECT_EQ(refusal_of(tensor("\"F32\"", each, "[0,4]"), 4),
              "the shape of a has something else than whole numbers");
  }
  EXPECT_EQ(refusal_of(tensor("\"F32\"", "[1]", "[0,-4]"), 4),
            "the place of a has something else than whole numbers");
  EXPECT_EQ(refusal_of(tensor("\"F32\"", "[1]", "[0,4,8]"), 4),
            "'a' has no shape or no two offsets");
  EXPECT_EQ(refusal_of(tensor("\"F32\"", "1", "[0,4]"), 4), "'a' has no shape or no two offsets");
  EXPECT_EQ(refusal_of(tensor("\"F32\"", "[1]", "4"), 4), "'a' has no shape or no two offsets");
  EXPECT_EQ(refusal_of(tensor("\"F32\"", "[9223372036854775808]", "[0,4]"), 4),
            "the shape of a has something else than whole numbers");
  EXPECT_EQ(refusal_of(tensor("\"U8\"", "[9223372036854775807]", "[0,4]"), 4),
            "'a' has another number of bytes than its shape");
  EXPECT_EQ(refusal_of(tensor("\"F32\"", "[[1]]", "[0,4]"), 4), "its header is nested too deeply");
  EXPECT_EQ(refusal_of(tensor("\"F32\"", "[[]]", "[0,4]"), 4),
            "the shape of a has something else than whole numbers");
}

TEST(Safetensors, BytesThatBelongToNoneOrToTwoTensorsAreRefused) {
  const auto two = [](const std::string& first, const std::string& second) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}";
  };
  EXPECT_EQ(refusal_of(two("[0,4]", "[4,8]"), 8), "taken");
  EXPECT_EQ(refusal_of(two("[4,8]", "[0,4]"), 8), "taken");
  const std::string gap = " does not begin where the tensor before it ends";
  EXPECT_EQ(refusal_of(two("[0,4]", "[5,9]"), 9), "'b'" + gap);
  EXPECT_EQ(refusal_of(two("[0,4]", "[3,7]"), 7), "'b'" + gap);
  EXPECT_EQ(refusal_of(two("[0,4]", "[0,4]"), 4), "'b'" + gap);
  EXPECT_EQ(refusal_of(two("[1,5]", "[5,9]"), 9), "'a'" + gap);
  EXPECT_EQ(refusal_of(two("[0,4]", "[4,3]"), 4), "'b'" + gap);
  EXPECT_EQ(refusal_of(two("[0,3]", "[3,7]"), 7), "'a' has another number of bytes than its shape");
  EXPECT_EQ(refusal_of(two("[0,4]", "[4,8]"), 9), "its tensors should take 8 bytes, 9 are there");
  EXPECT_EQ(refusal_of(two("[0,4]", "[4,8]"), 7), "its tensors should take 8 bytes, 7 are there");
  EXPECT_EQ(
      refusal_of(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
      "'a' has another number of bytes than its shape");
}

}  // namespace
}  // namespace dtool::trainer::safetensors
