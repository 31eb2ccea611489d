// SPDX-License-Identifier: MIT
// Writes dtool's digits as MNIST's four files into a folder: `bench_digits_as_idx FOLDER`. For
// tests/bench/trainer where MNIST is not at hand.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory_resource>
#include <string>
#include <vector>

#include "trainer/data/drawn_data.h"

namespace {

void write_number(std::ofstream& file, std::int64_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) file.put(static_cast<char>(number >> shift));
}

void write_file(const std::string& name, const std::vector<std::int64_t>& shape,
                const std::pmr::vector<std::uint8_t>& values) {
  std::ofstream file(name, std::ios::binary);
  write_number(file, 0x800 + static_cast<std::int64_t>(shape.size()));
  for (const auto each : shape) write_number(file, each);
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size()));
}

void write_set(const std::string& name, std::int64_t count, std::uint64_t seed) {
  const auto digits = dtool::trainer::draw_digits(count, seed);
  write_file(name + "-images-idx3-ubyte", {count, 28, 28}, digits.images);
  write_file(name + "-labels-idx1-ubyte", {count}, digits.labels);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  write_set(folder / "train", 20000, 0);
  write_set(folder / "t10k", 2000, 1);
}
