// SPDX-License-Identifier: MIT
// For algorithms that need a power of two of ranks: how the surplus ranks take part.
#pragma once

#include "trainer/comm/exchange_plan.h"

namespace dtool::trainer {

/// With n ranks and p the largest power of two up to n, the first 2 (n - p) ranks pair up: each odd
/// one gives its tensor to the even one before it and waits for the result. The remaining p ranks
/// get new numbers from 0, in order; rank 0 stays 0.
class Folding {
 public:
  Folding(int rank, int size);

  int size() const { return size_; }                     ///< p
  bool waits() const { return number_ == kNobody; }      ///< this rank gave its tensor away
  int number() const { return number_; }                 ///< this rank's new number
  int rank_of(int number) const;                         ///< the rank that has a new number
  void fold(Plan& plan, std::int64_t elements) const;    ///< the round before the algorithm
  void unfold(Plan& plan, std::int64_t elements) const;  ///< the round after an all-reduce

 private:
  bool has_partner() const { return rank_ < 2 * surplus_; }

  int rank_;
  int size_;
  int surplus_;
  int number_;
};

}  // namespace dtool::trainer
