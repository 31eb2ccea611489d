// Memory that processes of one machine share, without a name in any file system: nothing is left
// behind however they end, and a container's small /dev/shm is no limit.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace dtool::trainer {

/// A mapping, undone at the end. Begins as zeros.
class SharedMemory {
 public:
  /// Makes new memory. Throws std::system_error.
  explicit SharedMemory(std::size_t size);
  /// Maps what another process of this machine made; absent if it cannot be seen from here
  /// (another container, another user).
  static std::optional<SharedMemory> open(const std::string& name, std::size_t size);

  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;

  std::byte* data() const { return data_; }
  /// What `open` takes, good until `forget_name`. Another process may have the same name for
  /// something else, so what is found must be recognised.
  const std::string& name() const { return name_; }
  void forget_name();

 private:
  SharedMemory() = default;

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  int descriptor_ = -1;
  std::string name_;
};

}  // namespace dtool::trainer
