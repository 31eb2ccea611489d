// Preloaded into workers by tests: a disk that takes DTOOL_TEST_FSYNC_SECONDS to keep a checkpoint.
#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

namespace {

bool is_checkpoint(int descriptor) {
  std::error_code gone;
  const auto link = "/proc/self/fd/" + std::to_string(descriptor);
  return std::filesystem::read_symlink(link, gone).extension() == ".partial";
}

}  // namespace

extern "C" int fsync(int descriptor) {
  using Fsync = int (*)(int);
  static const auto real = reinterpret_cast<Fsync>(dlsym(RTLD_NEXT, "fsync"));
  const char* seconds = std::getenv("DTOOL_TEST_FSYNC_SECONDS");
  if (seconds != nullptr && is_checkpoint(descriptor)) {
    std::this_thread::sleep_for(std::chrono::seconds(std::atoi(seconds)));
  }
  return real(descriptor);
}
