// SPDX-License-Identifier: MIT
// Memory that processes of one machine share. It has no name in any file system: nothing is left
// behind, however the processes end, and a container's small /dev/shm does not limit it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "killfiles/channel/wire.h"

namespace dtool::trainer {

/// A mapping, removed at the end. It begins as zeros.
class SharedMemory {
 public:
  /// Makes new memory, for this user only, and takes all of it now. Throws std::system_error, with
  /// ENOMEM or ENOSPC if the machine has too little.
  explicit SharedMemory(std::size_t size);
  /// Maps memory that another process of this machine made; absent if it cannot be seen from here
  /// (another container, another user) or is another user's.
  static std::optional<SharedMemory> open(const std::string& name, std::size_t size);
  /// The same for memory that is frozen; absent if it is not.
  static std::optional<SharedMemory> open_frozen(const std::string& name, std::size_t size);

  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;

  /// From now on no process can change what the others see: a page that one writes to becomes its
  /// own copy. No other process may have it open yet. Throws std::system_error, after which the
  /// content may be lost.
  void freeze();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// The name for `open`, valid until `forget_name`. Another process may use the same name for
  /// something else, so the content must be checked.
  const std::string& name() const { return name_; }
  void forget_name() { file_.reset(); }

 private:
  SharedMemory() = default;

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  host::Descriptor file_;
  std::string name_;
};

}  // namespace dtool::trainer
