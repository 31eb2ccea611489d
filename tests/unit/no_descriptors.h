// SPDX-License-Identifier: MIT
// A process that has used up its descriptors, for tests of what is said then.
#pragma once

#include <sys/resource.h>

namespace dtool::tests {

/// While it lives, this process can open no more files and sockets; those that are open stay so.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{0, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace dtool::tests
