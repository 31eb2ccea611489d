// SPDX-License-Identifier: MIT
// System calls that fail in this process, as they do on other kernels or where a host has run out
// of something; for a process of its own (EXPECT_EXIT), since nothing takes that back.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <iterator>

namespace dtool::tests {

/// Those calls whose argument, counted from 0, is `bits` in the bits of `mask`; without one: all.
struct Calls {
  unsigned argument = 0;
  std::uint32_t mask = 0;
  std::uint32_t bits = 0;
};

/// From now on the call (SYS_…) fails with that error, here and in all processes made here. Where
/// that cannot be had, the process ends with exit code 99.
inline void refuse_call(unsigned call, unsigned error, Calls which = {}) {
  const auto place =
      static_cast<unsigned>(offsetof(seccomp_data, args) + which.argument * sizeof(std::uint64_t));
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, place),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, which.mask),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, which.bits, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(steps), steps};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    ::_exit(99);
}

/// No process can be made any more.
inline void refuse_processes(unsigned error) {
  for (const unsigned call : {SYS_clone, SYS_clone3}) refuse_call(call, error);
#ifdef SYS_fork
  for (const unsigned call : {SYS_fork, SYS_vfork}) refuse_call(call, error);
#endif
}

}  // namespace dtool::tests
