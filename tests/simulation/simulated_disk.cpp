// SPDX-License-Identifier: MIT
#include "tests/simulation/simulated_disk.h"

#include <stdexcept>
#include <utility>

namespace dtool::simulation {

void SimulatedDisk::step() {
  if (steps_left_ && --*steps_left_ <= 0) throw PowerLoss{place_};
}

void SimulatedDisk::make(const std::string& path) {
  step();
  names_[path] = std::make_shared<File>();
  note_names();
}

void SimulatedDisk::open(const std::string& path) {
  step();
  if (!names_.contains(path)) make(path);
}

void SimulatedDisk::write(const std::string& path, std::string_view content) {
  step();
  File& file = *names_.at(path);
  if (is_full_ && content.size() > file.bytes.size()) throw std::runtime_error("the disk is full");
  file.bytes.replace(0, content.size(), content);
}

void SimulatedDisk::flush(const std::string& path) {
  step();
  File& file = *names_.at(path);
  file.flushed = file.bytes;
  flushed_names_ = names_;
  later_names_.clear();
}

void SimulatedDisk::rename(const std::string& from, const std::string& to) {
  step();
  if (from == to) return;
  names_[to] = std::exchange(names_.at(from), nullptr);
  names_.erase(from);
  note_names();
  step();
}

std::vector<std::string> SimulatedDisk::list() const {
  std::vector<std::string> all;
  for (const auto& [name, file] : names_) all.push_back(name);
  return all;
}

void SimulatedDisk::lose_power(std::mt19937_64& engine) {
  const std::size_t kept = engine() % (later_names_.size() + 1);
  names_ = kept == 0 ? flushed_names_ : later_names_[kept - 1];
  for (const auto& [name, file] : names_) {
    if (file->bytes == file->flushed) continue;
    const std::size_t whole = engine() % (file->bytes.size() + 1);
    std::string left = file->flushed;
    left.replace(0, whole, file->bytes, 0, whole);
    file->bytes = file->flushed = left;
  }
}

}  // namespace dtool::simulation
