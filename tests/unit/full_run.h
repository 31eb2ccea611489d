// SPDX-License-Identifier: MIT
// A run of which each field has a value of its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "killfiles/run.h"

namespace dtool::tests {

inline killfiles::Run full_run() {
  killfiles::Run run;
  int place = 0;
  const auto fill = [&place](auto& value) {
    using Value = std::remove_reference_t<decltype(value)>;
    const std::string word = "word" + std::to_string(++place);
    if constexpr (std::is_same_v<Value, std::string>) {
      value = word;
    } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
      value = {word, word + "b"};
    } else {
      value = place;
    }
  };
  visit_rows(run, [&fill](const killfiles::Row&, auto& value) { fill(value); });
  run.created = "2026-11-21T03:45:12Z";
  run.on_failure = killfiles::Run::kStop;
  return run;
}

}  // namespace dtool::tests
