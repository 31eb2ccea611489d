// Compiled with -O3: the compiler makes vector instructions of the loop.
#include "trainer/data/gather_bytes.h"

namespace dtool::trainer {
namespace {

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("avx2", "default")))
#endif
void to_floats(const std::uint8_t* __restrict in, float* __restrict out, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) out[i] = static_cast<float>(in[i]) / 255.0F;
}

}  // namespace

void gather_bytes(const std::uint8_t* rows, std::int64_t width,
                  std::span<const std::int64_t> samples, float* out) {
  for (const std::int64_t sample : samples) {
    to_floats(rows + sample * width, out, width);
    out += width;
  }
}

}  // namespace dtool::trainer
