// SPDX-License-Identifier: MIT
// A process that has few descriptors left, for tests of what is said then.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <vector>

namespace dtool::tests {

/// While it lives, this process can open so many more files and sockets.
class FewDescriptors {
 public:
  explicit FewDescriptors(std::size_t left) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{kLimit, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    for (int each = 0; (each = ::dup(STDERR_FILENO)) != -1;) taken_.push_back(each);
    for (; left > 0 && !taken_.empty(); --left) give_back();
  }
  ~FewDescriptors() {
    while (!taken_.empty()) give_back();
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  static constexpr rlim_t kLimit = 256;

  void give_back() {
    ::close(taken_.back());
    taken_.pop_back();
  }

  rlimit before_{};
  std::vector<int> taken_;
};

}  // namespace dtool::tests
