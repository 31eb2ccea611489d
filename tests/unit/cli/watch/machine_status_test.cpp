// SPDX-License-Identifier: MIT
// What is known of a machine, as JSON.
#include "cli/watch/machine_status.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/cli/watch/read_status.h"

namespace dtool::cli {
namespace {

using tests::read_status;

TEST(MachineStatus, TheDocumentHasWhatIsKnownAlone) {
  const nlohmann::json json = to_json(read_status("pid=7\nup_s=65\nprocesses=3\ncpu_percent=150"));
  EXPECT_EQ(json["state"], "running");
  EXPECT_EQ(json["cpu_percent"], 150);
  EXPECT_FALSE(json.contains("memory_bytes"));
  EXPECT_FALSE(json.contains("exit_code"));
}

}  // namespace
}  // namespace dtool::cli
