// SPDX-License-Identifier: MIT
// A secret that only the processes of one run know, and how they prove their knowledge without
// sending it.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "trainer/settings/environment.h"

namespace dtool::trainer {

/// Environment variable with the name of the token's file. The token itself is not in it, since
/// others can read arguments and environments.
inline constexpr const char* kTokenFileVariable = "DTOOL_TOKEN_FILE";

class RunToken {
 public:
  RunToken() = default;  ///< of a run without a token: proves only that both sides use the same
                         ///< protocol
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

}  // namespace dtool::trainer
