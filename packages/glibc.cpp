// SPDX-License-Identifier: MIT
// What the portable dtool takes from glibc 2.35 and 2.36, so that it runs from 2.34 on.
// packages.cmake builds it.
#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace {

/// Tells the object that `wanted.address` lies in, for the unwinder of libgcc.a.
struct Wanted {
  std::uintptr_t address;
  dl_find_object* found;
};

int look(dl_phdr_info* object, std::size_t, void* argument) {
  const auto& wanted = *static_cast<const Wanted*>(argument);
  bool inside = false;
  const ElfW(Phdr)* frames = nullptr;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    // An address below the part gives a number that is greater than its size.
    if (part.p_type == PT_LOAD)
      inside |= wanted.address - object->dlpi_addr - part.p_vaddr < part.p_memsz;
    if (part.p_type == PT_GNU_EH_FRAME) frames = &part;
  }
  if (!inside || frames == nullptr) return 0;
  wanted.found->dlfo_eh_frame = reinterpret_cast<void*>(object->dlpi_addr + frames->p_vaddr);
  return 1;
}

}  // namespace

extern "C" {

int _dl_find_object(void* address, dl_find_object* found) noexcept {
  Wanted wanted{reinterpret_cast<std::uintptr_t>(address), found};
  return dl_iterate_phdr(look, &wanted) == 1 ? 0 : -1;
}

// For std::random_device. Four bytes are never given in parts.
std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  // EINTR is possible early after boot only.
  while (getrandom(&number, sizeof number, 0) != sizeof number) {
    if (errno != EINTR) std::abort();
  }
  return number;
}
}
