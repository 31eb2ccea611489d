// SPDX-License-Identifier: MIT
// As in MPICH: R. Thakur, R. Rabenseifner and W. Gropp, Optimization of Collective Communication
// Operations in MPICH (2005), section 4.5.
#include "trainer/comm/folding.h"

#include <bit>

namespace dtool::trainer {

Folding::Folding(int rank, int size)
    : rank_(rank),
      size_(static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))),
      surplus_(size - size_) {
  number_ = rank - surplus_;
  if (has_partner()) number_ = rank % 2 == 0 ? rank / 2 : kNobody;
}

int Folding::rank_of(int number) const {
  return number < surplus_ ? 2 * number : number + surplus_;
}

void Folding::fold(Plan& plan, std::int64_t elements) const {
  if (!has_partner()) return;
  const Section all{0, elements};
  if (waits()) {
    plan.push_back({rank_ - 1, all, kNobody, {}, Combine::add});
  } else {
    plan.push_back({kNobody, {}, rank_ + 1, all, Combine::add});
  }
}

void Folding::unfold(Plan& plan, std::int64_t elements) const {
  if (!has_partner()) return;
  const Section all{0, elements};
  if (waits()) {
    plan.push_back({kNobody, {}, rank_ - 1, all, Combine::replace});
  } else {
    plan.push_back({rank_ + 1, all, kNobody, {}, Combine::replace});
  }
}

}  // namespace dtool::trainer
