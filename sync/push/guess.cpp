// SPDX-License-Identifier: MIT
#include "sync/push/guess.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "sync/kept_listings.h"
#include "sync/push/tree_list.h"

namespace dtool::tree_sync {
namespace {

/// So much goes along with a question, and is all that is wasted for a host of which the guess is
/// wrong.
constexpr std::uint64_t kSmall = 32'000;
/// The largest guess for a folder from which nothing is known to have been sent; that happens once.
/// Not all of it is wasted, since a host that does not need it ends the command.
constexpr std::uint64_t kFirst = 8'000'000;

}  // namespace

Guess::Guess(const Tree& tree, const Listing& now, const std::vector<Entry>& before) {
  const Delta delta = find_delta(before, now.entries);
  files = list_entries(tree, delta.changed);
  Parcel parcel;
  for (std::size_t i = 0; i < files.entries.size(); ++i) {
    parcel.ranges.push_back({i, 0, files.entries[i].size});
    parcel.bytes += files.entries[i].size;
  }
  const std::vector<std::string> removed(delta.removed.begin(), delta.removed.end());
  package = pack_parcel(files, parcel, sums, Compression::zstd, Seal::no, removed);
  package.files = static_cast<std::size_t>(
      std::ranges::count_if(delta.changed, [](const Entry& each) { return !each.is_folder(); }));
}

std::unique_ptr<Guess> make_guess(const Tree& tree, const Listing& now) {
  const auto basis = last_kept(tree.root);
  if (basis == now.fingerprint) return nullptr;
  const auto before = basis ? kept_listing(*basis) : Listing{};
  if (!before) return nullptr;
  auto guess = std::make_unique<Guess>(tree, now, before->entries);
  if (guess->package.expected > (basis ? kSmall : kFirst)) return nullptr;
  guess->basis = basis.value_or("");
  return guess;
}

}  // namespace dtool::tree_sync
