// SPDX-License-Identifier: MIT
#include "ssh/host/tree/copied_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include "ssh/host/files.h"
#include "ssh/host/sha256.h"
#include "ssh/host/tree/tree_folder.h"

namespace dtool::host {
namespace {

/// Of more files than that, those that came first are forgotten.
constexpr std::size_t kMostKept = std::size_t{1} << 24U;
constexpr std::size_t kEach = sizeof(std::uint64_t);
constexpr int kWaitForList = 10'000;  // milliseconds

std::string list_path() {
  return expand_home("~/.dtool/copied");
}

std::uint64_t hash_of(const struct stat& file) {
  const Digest digest = sha256(stamp_of(file, ""));
  std::uint64_t hash = 0;
  std::memcpy(&hash, digest.data(), kEach);
  return hash;
}

std::vector<std::uint64_t> hashes_in(std::string_view text) {
  std::vector<std::uint64_t> hashes(text.size() / kEach);
  if (!hashes.empty()) std::memcpy(hashes.data(), text.data(), hashes.size() * kEach);
  return hashes;
}

std::string_view bytes_of(const std::vector<std::uint64_t>& hashes) {
  return {reinterpret_cast<const char*>(hashes.data()), hashes.size() * kEach};
}

}  // namespace

void CopiedFiles::read() {
  if (known_) return;
  known_ = hashes_in(read_file(list_path(), kLargestList).value_or(""));
  std::ranges::sort(*known_);
}

bool CopiedFiles::has(const struct stat& file) {
  read();
  return std::ranges::binary_search(*known_, hash_of(file));
}

void CopiedFiles::add(const struct stat& file) {
  added_.push_back(hash_of(file));
}

void CopiedFiles::keep() {
  read();
  std::ranges::sort(added_);
  std::vector<std::uint64_t> added;
  std::ranges::set_difference(added_, *known_, std::back_inserter(added));
  if (added.empty()) return;
  const std::string path = list_path();
  if (!make_folders(folder_of(path))) return;
  const Descriptor lock = lock_file(path + ".lock", kWaitForList);
  if (!lock.is_open()) return;
  try {
    // Others may have added some since.
    std::vector<std::uint64_t> all = hashes_in(read_file(path, kLargestList).value_or(""));
    all.insert(all.end(), added.begin(), added.end());
    if (all.size() > kMostKept) all.erase(all.begin(), all.end() - kMostKept);
    write_file(path, std::string(bytes_of(all)));
  } catch (const std::runtime_error&) {
  }
}

}  // namespace dtool::host
