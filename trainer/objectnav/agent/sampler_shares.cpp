// SPDX-License-Identifier: MIT
// Ranks of one machine need not have neighbouring numbers, nor machines equally many ranks.
#include "trainer/objectnav/agent/sampler_shares.h"

#include <algorithm>

namespace dtool::trainer {

std::vector<SamplerRange> shares_of(const std::vector<Member>& members,
                                    const ObjectNavSettings& settings) {
  if (members.empty()) return {{0, settings.samplers}};
  std::vector<SamplerRange> shares;
  std::int64_t first = 0;
  for (auto each = members.begin(); each != members.end(); ++each) {
    const auto beside = [&](const Member& other) { return on_one_machine(*each, other); };
    const auto before = std::count_if(members.begin(), each, beside);
    const auto there = std::ranges::count_if(members, beside);
    shares.push_back({first, count_samplers(settings, before, there)});
    first += shares.back().count;
  }
  return shares;
}

std::int64_t count_all(const std::vector<SamplerRange>& shares) {
  return shares.back().first + shares.back().count;
}

Nodes nodes_of(const std::vector<Member>& members, const ObjectNavSettings& settings) {
  if (members.empty()) return nodes_of(settings, {1, 1});
  const std::int64_t machines = count_machines(members);
  std::int64_t most = 1;
  for (const Member& each : members) {
    const auto beside = [&](const Member& other) { return on_one_machine(each, other); };
    most = std::max<std::int64_t>(most, std::ranges::count_if(members, beside));
  }
  if (settings.samplers_per == SamplersPer::rank) {
    return nodes_of(settings, {static_cast<std::int64_t>(members.size()), machines});
  }
  return nodes_of(settings, {machines * most, machines});
}

}  // namespace dtool::trainer
