// SPDX-License-Identifier: MIT
#include "trainer/training/workload.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace dtool::trainer {

#define DTOOL_WORKLOAD(word, folder)   \
  namespace folder {                   \
  extern const WorkloadRunner kRunner; \
  }
#include "trainer/settings/workloads.def"
#undef DTOOL_WORKLOAD

const WorkloadRunner& runner_of(const Experiment& experiment) {
  struct Row {
    const char* word;
    const WorkloadRunner* runner;
  };
  static const Row rows[] = {
#define DTOOL_WORKLOAD(word, folder) {#word, &folder::kRunner},
#include "trainer/settings/workloads.def"
#undef DTOOL_WORKLOAD
  };
  const auto* row = std::ranges::find(rows, experiment.workload, &Row::word);
  assert(row != std::end(rows));
  return *row->runner;
}

}  // namespace dtool::trainer
