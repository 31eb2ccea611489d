// SPDX-License-Identifier: MIT
// The algorithms, one after another, the choice among them, and a rank's way through a plan.
#include "trainer/comm/exchange_plan.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

namespace dtool::trainer {

Section part_of(std::int64_t elements, int parts, int index) {
  const std::int64_t least = elements / parts;
  const std::int64_t longer = elements % parts;  // this many parts have one more
  const auto begin_of = [&](std::int64_t part) { return part * least + std::min(part, longer); };
  return {begin_of(index), begin_of(index + 1)};
}

namespace {

// For algorithms that need a power of two of ranks: how the surplus ranks take part.

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

// As in MPICH: R. Thakur, R. Rabenseifner and W. Gropp, Optimization of Collective Communication
// Operations in MPICH (2005), section 4.5.

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

// The ring: in each round a rank sends a part of the tensor to the next rank and receives one from
// the previous rank. There are 2 (n - 1) rounds, and each rank sends 2 (n - 1) / n of the tensor:
// the fewest bytes possible, and the most rounds. P. Patarasuk and X. Yuan, Bandwidth optimal
// all-reduce algorithms for clusters of workstations (2009).

/// After it, rank r has the sum of part r + 1.
Plan ring_reduce_scatter(int rank, int size, std::int64_t elements) {
  Plan plan;
  const auto part = [&](int index) { return part_of(elements, size, (index + size) % size); };
  for (int round = 0; round < size - 1; ++round) {
    plan.push_back({(rank + 1) % size, part(rank - round), (rank + size - 1) % size,
                    part(rank - round - 1), Combine::add});
  }
  return plan;
}

Plan ring_all_reduce(int rank, int size, std::int64_t elements) {
  Plan plan = ring_reduce_scatter(rank, size, elements);
  const auto part = [&](int index) { return part_of(elements, size, (index + size) % size); };
  for (int round = 0; round < size - 1; ++round) {
    plan.push_back({(rank + 1) % size, part(rank + 1 - round), (rank + size - 1) % size,
                    part(rank - round), Combine::replace});
  }
  return plan;
}

// Recursive halving and doubling: partners exchange halves of the range that they still share,
// until each rank has the sum of one part; then the same way back. It needs 2 log2(n) rounds and as
// few bytes as the ring if n is a power of two; otherwise two more rounds of the whole tensor
// (Folding, above). R. Rabenseifner, Optimization of Collective Reduction Operations (2004).

struct Halves {
  Section kept;
  Section given;
};

/// The rank whose number has the bit `distance` keeps the upper half.
Halves halves_of(const Section& range, int number, int distance) {
  const std::int64_t middle = range.begin + range.size() / 2;
  const Section lower{range.begin, middle};
  const Section upper{middle, range.end};
  return (number & distance) != 0 ? Halves{upper, lower} : Halves{lower, upper};
}

/// Adds the rounds of the halving; returns what was kept and given in each.
std::vector<Halves> halve(Plan& plan, const Folding& ranks, std::int64_t elements) {
  std::vector<Halves> rounds;
  Section shared{0, elements};
  for (int distance = ranks.size() / 2; distance > 0; distance /= 2) {
    const int partner = ranks.rank_of(ranks.number() ^ distance);
    rounds.push_back(halves_of(shared, ranks.number(), distance));
    shared = rounds.back().kept;
    plan.push_back({partner, rounds.back().given, partner, shared, Combine::add});
  }
  return rounds;
}

Plan halving_doubling_all_reduce(int rank, int size, std::int64_t elements) {
  const Folding ranks(rank, size);
  Plan plan;
  ranks.fold(plan, elements);
  if (!ranks.waits()) {
    const auto rounds = halve(plan, ranks, elements);
    int distance = 1;
    for (auto round = rounds.rbegin(); round != rounds.rend(); ++round, distance *= 2) {
      const int partner = ranks.rank_of(ranks.number() ^ distance);
      plan.push_back({partner, round->kept, partner, round->given, Combine::replace});
    }
  }
  ranks.unfold(plan, elements);
  return plan;
}

// Recursive doubling: partners exchange everything they have, and after log2(n) rounds every rank
// has everything (two rounds more if n is not a power of two, Folding above). It needs the fewest
// rounds and the most bytes, so it suits messages whose overhead exceeds their content. Both
// partners add the same two numbers, and a + b has the same bits as b + a, so all ranks get equal
// bits.

Plan doubling_all_reduce(int rank, int size, std::int64_t elements) {
  const Folding ranks(rank, size);
  const Section all{0, elements};
  Plan plan;
  ranks.fold(plan, elements);
  for (int distance = 1; distance < ranks.size() && !ranks.waits(); distance *= 2) {
    const int partner = ranks.rank_of(ranks.number() ^ distance);
    plan.push_back({partner, all, partner, all, Combine::add});
  }
  ranks.unfold(plan, elements);
  return plan;
}

// Pairwise exchange: each rank sends every other rank the part that the other one adds up, and then
// the sum of its own part. It sends as few bytes as the ring, and a rank waits only twice: for all
// parts, and for all sums. Its 2 (n - 1) messages do not wait for each other, so it suits ranks
// that answer slowly, because hosts are busy or far away. First half: R. Thakur, R. Rabenseifner
// and W. Gropp, Optimization of Collective Communication Operations in MPICH (2005), section 4.3.

/// After it, rank r has the sum of part r.
Plan pairwise_reduce_scatter(int rank, int size, std::int64_t elements) {
  Plan plan;
  for (int distance = 1; distance < size; ++distance) {
    const int to = (rank + distance) % size;
    const int from = (rank + size - distance) % size;
    plan.push_back(
        {to, part_of(elements, size, to), from, part_of(elements, size, rank), Combine::add});
  }
  return plan;
}

Plan pairwise_all_reduce(int rank, int size, std::int64_t elements) {
  Plan plan = pairwise_reduce_scatter(rank, size, elements);
  for (int distance = 1; distance < size; ++distance) {
    const int to = (rank + distance) % size;
    const int from = (rank + size - distance) % size;
    plan.push_back(
        {to, part_of(elements, size, rank), from, part_of(elements, size, from), Combine::replace});
  }
  return plan;
}

std::int64_t to_send(const Round& round) {
  return round.send_to == kNobody ? 0 : round.send.size();
}

std::int64_t to_receive(const Round& round) {
  return round.receive_from == kNobody ? 0 : round.receive.size();
}

/// The part of `wanted`, from its beginning, that lies before the missing part of `other`, whose
/// first `ready` numbers are there.
std::int64_t before(const Section& wanted, const Section& other, std::int64_t ready) {
  const bool overlap = wanted.begin < other.end && other.begin < wanted.end;
  if (!overlap) return wanted.size();
  return std::clamp<std::int64_t>(other.begin + ready - wanted.begin, 0, wanted.size());
}

}  // namespace

Plan plan_all_reduce(Way way, int rank, int size, std::int64_t elements) {
  switch (way) {
    case Way::ring:
      return ring_all_reduce(rank, size, elements);
    case Way::pairwise:
      return pairwise_all_reduce(rank, size, elements);
    case Way::halving_doubling:
      return halving_doubling_all_reduce(rank, size, elements);
    case Way::doubling:
      return doubling_all_reduce(rank, size, elements);
    default:
      throw std::logic_error("no algorithm of ours");
  }
}

std::set<int> peers_in(const Plan& plan) {
  std::set<int> peers;
  for (const Round& each : plan) peers.insert({each.send_to, each.receive_from});
  peers.erase(kNobody);
  return peers;
}

// This file is compiled with vector instructions, for these two.

void combine(float* __restrict into, const float* __restrict from, std::size_t count, Combine how) {
  if (how == Combine::replace) {
    std::memcpy(into, from, count * sizeof(float));
    return;
  }
  for (std::size_t i = 0; i < count; ++i) into[i] += from[i];
}

void scale(float* numbers, std::size_t count, float factor) {
  for (std::size_t i = 0; i < count; ++i) numbers[i] *= factor;
}

// A round's message has to wait only for overlapping messages of earlier rounds. Only the rounds
// between the two directions' positions matter: the others are finished or come later.

PlanProgress::PlanProgress(const Plan& plan) : plan_(plan) {
  skip_empty();
}

void PlanProgress::skip_empty() {
  while (is_sending() && sent_ == to_send(out())) {
    ++sending_;
    sent_ = 0;
  }
  while (is_receiving() && received_ == to_receive(in())) {
    ++receiving_;
    received_ = 0;
  }
}

std::int64_t PlanProgress::may_send() const {
  if (!is_sending()) return 0;
  std::int64_t end = out().send.size();
  for (std::size_t i = receiving_; i < sending_; ++i) {
    if (to_receive(plan_[i]) == 0) continue;
    end = std::min(end, before(out().send, plan_[i].receive, i == receiving_ ? received_ : 0));
  }
  return std::max<std::int64_t>(end - sent_, 0);
}

std::int64_t PlanProgress::may_receive() const {
  if (!is_receiving()) return 0;
  std::int64_t end = in().receive.size();
  for (std::size_t i = sending_; i <= receiving_; ++i) {
    if (to_send(plan_[i]) == 0) continue;
    end = std::min(end, before(in().receive, plan_[i].send, i == sending_ ? sent_ : 0));
  }
  return std::max<std::int64_t>(end - received_, 0);
}

void PlanProgress::add_sent(std::int64_t count) {
  sent_ += count;
  skip_empty();
}

void PlanProgress::add_received(std::int64_t count) {
  received_ += count;
  skip_empty();
}

}  // namespace dtool::trainer
