// SPDX-License-Identifier: MIT
#include "ssh/host/session/limits.h"

#include <sys/resource.h>

namespace dtool::host {
namespace {

bool is_raised = false;
rlimit before{};

}  // namespace

void raise_open_files() {
  if (is_raised || ::getrlimit(RLIMIT_NOFILE, &before) != 0) return;
  rlimit raised = before;
  raised.rlim_cur = raised.rlim_max;
  is_raised = ::setrlimit(RLIMIT_NOFILE, &raised) == 0;
}

void restore_open_files() {
  if (is_raised) ::setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace dtool::host
