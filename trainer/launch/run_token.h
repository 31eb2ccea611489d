// What only the processes of one run know, and how they prove it to each other without saying it.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "trainer/launch/environment.h"

namespace dtool::trainer {

/// Names the file with the token: a path, since arguments and environments can be read by others.
inline constexpr const char* kTokenFileVariable = "DTOOL_TOKEN_FILE";

class RunToken {
 public:
  RunToken() = default;  ///< of a run that was given none: proves only that both speak alike
  explicit RunToken(std::string secret) : secret_(std::move(secret)) {}

  bool is_given() const { return !secret_.empty(); }

  /// HMAC-SHA256 of `words`, each told apart from the next, as 64 hexadecimal digits.
  std::string prove(std::initializer_list<std::string_view> words) const;

 private:
  std::string secret_;
};

/// The token in the file that the variable names; without it, none. Throws UsageError if the
/// file cannot be read, is another user's, or can be read by others.
RunToken read_run_token(const Environment& environment);

/// This process's, read once.
const RunToken& own_run_token();

/// For workers on this machine only: gives them a token where none was given. They inherit it.
void make_own_run_token();

/// Says in the same time whether two proofs agree, wherever they differ.
bool is_same_proof(std::string_view one, std::string_view other);

/// 32 random hexadecimal digits.
std::string random_nonce();

}  // namespace dtool::trainer
