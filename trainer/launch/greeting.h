// SPDX-License-Identifier: MIT
// The four lines by which two processes of a run recognise each other before any other traffic:
//
//   dtool-trainer VERSION DOOR NONCE PROOF     from the side that connects
//   known NONCE PROOF                          from the side that listens, only to a proven caller
//   here PROOF WORDS                           who connects, and what it wants
//   welcome PROOF WORDS                        what it needs to know
//
// Each proof is made with the run's token over both nonces and all earlier lines. Each line has its
// own name in its proof, so that no proof can be used twice or elsewhere.
#pragma once

#include <chrono>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/settings/endpoint.h"
#include "trainer/settings/experiment.h"

namespace dtool::trainer {

// A secret that only the processes of one run know, and how they prove their knowledge without
// sending it.

/// Environment variable with the name of the token's file. The token itself is not in it, since
/// others can read arguments and environments.
inline constexpr const char* kTokenFileVariable = "DTOOL_TOKEN_FILE";

class RunToken {
 public:
  /// The token of a run without a token: proves only that both sides use the same protocol.
  RunToken() = default;
  explicit RunToken(std::string secret) : secret_(std::move(secret)) {}

  bool is_given() const { return !secret_.empty(); }

  /// HMAC-SHA256 of `words` (each delimited), as 64 hexadecimal digits.
  std::string prove(std::initializer_list<std::string_view> words) const;

 private:
  std::string secret_;
};

/// The token from the file in that variable; without it, none. Throws UsageError if the file cannot
/// be read, belongs to another user, or is readable by others.
RunToken read_run_token(const Environment& environment);

/// This process's token, read once.
const RunToken& own_run_token();

/// For workers on this machine only: makes a token if none was given. The workers inherit it.
void make_own_run_token();

/// Compares two proofs in constant time.
bool is_same_proof(std::string_view one, std::string_view other);

/// 32 random hexadecimal digits.
std::string random_nonce();

/// Both sides must have the same version.
inline constexpr int kGreetingVersion = 3;

inline constexpr std::size_t kLongestGreeting = 1024;

/// One greeting, for both sides. A malformed or unproven line gives no value.
class Greeting {
 public:
  Greeting(const RunToken& token, std::string door) : token_(&token), door_(std::move(door)) {}

  std::string begin();  ///< the first line
  /// The second line, which is the answer to the first.
  std::optional<std::string> answer(std::string_view);
  std::optional<std::string> reply(std::string_view, std::string_view words);  ///< the third
  std::optional<std::string> hear(std::string_view);         ///< the third line's words
  std::string welcome(std::string_view words) const;         ///< the fourth line
  std::optional<std::string> enter(std::string_view) const;  ///< the fourth line's words

 private:
  std::string proof(std::string_view line, std::string_view words) const;
  std::optional<std::string> checked(std::string_view line, std::string_view name) const;

  const RunToken* token_;
  std::string door_;
  std::string callers_;  ///< nonce
  std::string hosts_;    ///< nonce
};

/// The listening process does not belong to this run.
struct NotOfThisRun : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A connection whose two sides have proven that they belong to the same run.
struct Call {
  int descriptor;       ///< non-blocking
  std::string welcome;  ///< the words of the last line
};

/// Tries to connect until `patience` is over, then greets. Throws std::runtime_error if there is no
/// listener, and NotOfThisRun.
Call call_at(const Endpoint& endpoint, std::string_view door, std::string_view words,
             std::chrono::milliseconds patience, const RunToken& token = own_run_token());

/// The words of a line, separated by single blanks; absent if their number is not `count` or one is
/// empty.
std::optional<std::vector<std::string>> split_words(std::string_view line, std::size_t count);

/// A whole number from `least` to `most`; the text must be nothing else.
std::optional<std::int64_t> parse_whole(std::string_view text, std::int64_t least,
                                        std::int64_t most);

}  // namespace dtool::trainer
