// SPDX-License-Identifier: MIT
// How hosts that share a folder find each other: a file there with a random name, which one host
// writes and the others find. Numbers such as inodes are equal on machines that share nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace dtool::host {

/// Leftovers of what was interrupted do no harm: each push and each look has a name of its own.
class Mark {
 public:
  /// `name`: of the push or look, random; empty: the mark is never there and never made. `host`:
  /// this one's number in it.
  Mark(const std::string& folder, const std::string& name, std::int64_t host);

  /// The other host that has the folder in hand.
  std::optional<std::int64_t> holder() const;
  /// This host has it in hand, unless another one was there before: then that one. Where the folder
  /// cannot be written to, nobody has.
  std::optional<std::int64_t> take() const;
  /// Removes what take() made.
  void let_go() const;

 private:
  std::string path_;
  std::int64_t host_;
  bool is_used_ = false;
};

}  // namespace dtool::host
