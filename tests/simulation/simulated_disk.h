// SPDX-License-Identifier: MIT
// A simulated host's disk: it may be full, and a power loss takes what was not flushed.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/host/files.h"

namespace dtool::simulation {

/// The power fails in the middle of a disk's work.
struct PowerLoss {
  int place = 0;
};

class SimulatedDisk : public host::Disk {
 public:
  explicit SimulatedDisk(int place) : place_(place) {}

  void make(const std::string& path) override;
  void open(const std::string& path) override;
  void write(const std::string& path, std::string_view content) override;
  void flush(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;

  bool has(const std::string& path) const { return names_.contains(path); }
  std::string read(const std::string& path) const { return names_.at(path)->bytes; }
  std::vector<std::string> list() const;

  void set_full(bool is_full) { is_full_ = is_full; }
  /// The power fails at that step, counted from the next as 1. The end of a record is one, too.
  void fail_at_step(int step) { steps_left_ = step; }
  /// What is on the disk when the power is back. As on a journalling file system, names come in
  /// their order, and those before a flush are there; bytes that were not flushed may be half
  /// there.
  void lose_power(std::mt19937_64& engine);

 private:
  struct File {
    std::string bytes;
    std::string flushed;
  };
  using Names = std::map<std::string, std::shared_ptr<File>>;

  void step();
  void note_names() { later_names_.push_back(names_); }

  const int place_;
  bool is_full_ = false;
  std::optional<int> steps_left_;
  Names names_;
  Names flushed_names_;
  std::vector<Names> later_names_;  ///< after each step since the last flush
};

}  // namespace dtool::simulation
