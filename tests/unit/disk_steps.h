// SPDX-License-Identifier: MIT
// What the code under test has the disk do, in order: for tests of what is left when the power
// fails. The program of tests that links disk_steps.cpp gets these calls in place of libc's.
#pragma once

#include <string>
#include <vector>

namespace dtool::tests {

/// While it lives, steps are noted: `flush PATH` (fsync), `flush all` (syncfs), `write PATH`,
/// `name PATH` (what was renamed).
class DiskSteps {
 public:
  DiskSteps();
  ~DiskSteps();
  DiskSteps(const DiskSteps&) = delete;
  DiskSteps& operator=(const DiskSteps&) = delete;

  /// Whether a file whose path ends so was flushed since its last write, and that before the first
  /// of the later steps that begin with `later` and end with `ending`; and there is one.
  bool are_flushed_before(const std::string& file, const std::string& later,
                          const std::string& ending) const;
  std::string text() const;

  /// From now on fsync of a file or folder whose path ends so fails with EIO.
  void fail_flushes_of(const std::string& ending);
};

}  // namespace dtool::tests
