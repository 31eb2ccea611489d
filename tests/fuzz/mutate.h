// SPDX-License-Identifier: MIT
// Spoils texts at random, the same way on every run: what the fuzz tests feed to the parsers. With
// DTOOL_FUZZ_TIMES=1000 and another DTOOL_FUZZ_SEED they take longer and see other texts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace dtool::fuzz {

/// `count` texts, or DTOOL_FUZZ_TIMES as many.
inline int rounds(int count) {
  const char* times = std::getenv("DTOOL_FUZZ_TIMES");
  return count * (times == nullptr ? 1 : std::max(1, std::atoi(times)));
}

/// DTOOL_FUZZ_SEED, or the usual one.
inline unsigned seed() {
  const char* seed = std::getenv("DTOOL_FUZZ_SEED");
  return seed == nullptr ? 20'261'121U : static_cast<unsigned>(std::atoi(seed));
}

class Mutator {
 public:
  /// `seeds` are right texts; `tokens` are pieces that mean something to the parser.
  Mutator(std::vector<std::string> seeds, std::vector<std::string> tokens)
      : seeds_(std::move(seeds)), tokens_(std::move(tokens)) {}

  const std::vector<std::string>& seeds() const { return seeds_; }
  const std::vector<std::string>& tokens() const { return tokens_; }

  /// A seed with up to eight faults in it.
  std::string next() {
    std::string text = one_of(seeds_);
    for (std::size_t left = below(9); left > 0; --left) spoil(text);
    constexpr std::size_t kLongest = 256U << 10U;
    return text.substr(0, kLongest);
  }

 private:
  std::size_t below(std::size_t end) { return end == 0 ? 0 : random_() % end; }
  const std::string& one_of(const std::vector<std::string>& texts) {
    return texts[below(texts.size())];
  }

  void spoil(std::string& text) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t size = below(std::min<std::size_t>(text.size() - at, 32) + 1);
    switch (below(64) == 0 ? 7 : below(7)) {
      case 0:
        text.insert(at, one_of(tokens_));
        break;
      case 1:
        text.replace(at, size, one_of(tokens_));
        break;
      case 2:
        text.erase(at, size);
        break;
      case 3:
        text.insert(below(text.size() + 1), text.substr(at, size));
        break;
      case 4:
        text.insert(at, 1, static_cast<char>(below(256)));
        break;
      case 5:
        text.resize(at);
        break;
      case 7:
        repeat(text, at, size);
        break;
      default:
        splice(text, at, one_of(seeds_));
    }
  }

  /// Makes a text much longer than any that is meant.
  void repeat(std::string& text, std::size_t at, std::size_t size) {
    const std::string part = text.substr(at, size);
    std::string many;
    for (std::size_t left = below(2000); left > 0; --left) many += part;
    text.insert(at, many);
  }

  void splice(std::string& text, std::size_t at, const std::string& other) {
    text.replace(at, std::string::npos, other.substr(below(other.size() + 1)));
  }

  std::vector<std::string> seeds_;
  std::vector<std::string> tokens_;
  std::mt19937 random_{seed()};
};

/// How many texts a parser took and how many it refused: a test in which either is 0 tests nothing.
struct Tally {
  int taken = 0;
  int refused = 0;
};

/// What feeds a parser in place of a Mutator, where the tests are built with libFuzzer
/// (tests/fuzz/libfuzzer.cpp): from right texts and pieces, with the one-input function.
using Driver = std::function<void(const std::vector<std::string>& seeds,
                                  const std::vector<std::string>& tokens,
                                  const std::function<void(const std::string&)>& one)>;
inline Driver& driver() {
  static Driver driver;
  return driver;
}

/// For parsers that refuse nothing.
class Never {};

/// Feeds `count` texts to `parse`, which checks what it must; a std::exception of the type
/// `Refusal` is a refusal, and everything else fails the test. A test calls it once.
template <typename Refusal = Never, typename Parse>
Tally feed(Mutator& mutator, int count, Parse&& parse) {
  Tally tally;
  const auto one = [&](const std::string& text) {
    try {
      parse(text);
      ++tally.taken;
    } catch (const Refusal&) {
      ++tally.refused;
    } catch (const std::exception& error) {
      throw std::runtime_error("an exception of another kind (" + std::string(error.what()) +
                               ") for: " + text);
    }
  };
  if (driver()) driver()(mutator.seeds(), mutator.tokens(), one);
  for (int i = 0; i < rounds(count); ++i) one(mutator.next());
  return tally;
}

}  // namespace dtool::fuzz
