// SPDX-License-Identifier: MIT
#include "trainer/settings/workload_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/settings/choice.h"
#include "trainer/settings/experiment.h"

namespace dtool::trainer {

#define DTOOL_WORKLOAD(word, folder)   \
  namespace folder {                   \
  extern const WorkloadReader kReader; \
  }
#include "trainer/settings/workloads.def"
#undef DTOOL_WORKLOAD

namespace {

/// The table of workloads, as reading sees it.
std::vector<Choice<const WorkloadReader*>> readers() {
  return {
#define DTOOL_WORKLOAD(word, folder) {#word, &folder::kReader},
#include "trainer/settings/workloads.def"
#undef DTOOL_WORKLOAD
  };
}

}  // namespace

void read_workload(TomlReader& reader, Experiment& experiment) {
  const auto all = readers();
  std::vector<std::string> words;
  for (const auto& each : all) words.emplace_back(each.word);
  experiment.workload = reader.word("workload", words);
  experiment.distributed_nodes = reader.integer_if_given("distributed_nodes", {1, 1 << 20});
  const auto chosen = std::ranges::find(words, experiment.workload) - words.begin();
  const WorkloadReader* its_own = all[static_cast<std::size_t>(chosen)].value;
  for (const auto& [word, other] : all) {
    if (other == its_own) continue;
    refuse_all(reader, other->own_keys, fmt::format("is only for workload = \"{}\"", word));
  }
  experiment.own = its_own->read(reader, experiment);
}

}  // namespace dtool::trainer
