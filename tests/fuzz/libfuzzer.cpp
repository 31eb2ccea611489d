// SPDX-License-Identifier: MIT
// The fuzz tests with libFuzzer, which finds its own way through a parser: tests/libfuzzer builds
// and calls this. `--gtest_filter=TEST CORPUS_FOLDER [OPTION OF LIBFUZZER...]` feeds the parser of
// that test. Exits with 77 if the test has none.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "tests/fuzz/mutate.h"

/// Of the library libFuzzer without its own main(). It does not return.
extern "C" int LLVMFuzzerRunDriver(int* argc, char*** argv,
                                   int (*one)(const std::uint8_t* data, std::size_t size));

namespace dtool::fuzz {
namespace {

namespace fs = std::filesystem;

/// Of the target that this process runs.
std::function<void(const std::string&)> one_input;

int feed_one(const std::uint8_t* data, std::size_t size) {
  one_input(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}

/// A line of libFuzzer's dictionary.
std::string quoted(const std::string& token) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string line = "\"";
  for (const char each : token) {
    const auto byte = static_cast<unsigned char>(each);
    line.append("\\x").append(1, kDigits[byte >> 4U]).append(1, kDigits[byte & 15U]);
  }
  return line + "\"\n";
}

void drive(int argc, char** argv, const std::vector<std::string>& seeds,
           const std::vector<std::string>& tokens,
           const std::function<void(const std::string&)>& one) {
  const fs::path corpus = argv[1];
  fs::create_directories(corpus);
  const auto write = [](const fs::path& file, const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
  };
  for (std::size_t i = 0; i < seeds.size(); ++i)
    write(corpus / ("seed" + std::to_string(i)), seeds[i]);
  std::string lines;
  for (const std::string& token : tokens) lines += token.empty() ? "" : quoted(token);
  const std::string dictionary = corpus.string() + ".dict";
  write(dictionary, lines);
  std::string option = "-dict=" + dictionary;
  std::vector<char*> words(argv, argv + argc);
  words.push_back(option.data());
  int count = static_cast<int>(words.size());
  words.push_back(nullptr);
  char** all = words.data();
  one_input = one;
  std::exit(LLVMFuzzerRunDriver(&count, &all, feed_one));
}

}  // namespace
}  // namespace dtool::fuzz

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc < 2) {
    std::cerr << "tests/libfuzzer calls this\n";
    return 2;
  }
  testing::GTEST_FLAG(break_on_failure) = true;  // libFuzzer keeps the input of a crash
  testing::GTEST_FLAG(catch_exceptions) = false;
  dtool::fuzz::driver() = [argc, argv](const auto& seeds, const auto& tokens, const auto& one) {
    dtool::fuzz::drive(argc, argv, seeds, tokens, one);
  };
  const int code = RUN_ALL_TESTS();
  return code == 0 ? 77 : code;
}
