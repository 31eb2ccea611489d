// SPDX-License-Identifier: MIT
// One machine's log as dtool-host sends it (host::LogRequest): its bytes, and their place in the
// file. Another connection can continue from that place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ssh/wire/frames.h"
#include "ssh/wire/log.h"

namespace dtool::cli {

class LogStream {
 public:
  virtual ~LogStream() = default;

  /// Takes dtool-host's output. Anything that is not a log becomes a fault, and the rest is
  /// ignored.
  void add(std::string_view bytes);
  /// Call it when another connection begins.
  void begin_again();

  bool has_begun() const { return has_begun_; }
  /// Who the host says it is.
  const std::string& host() const { return host_; }
  /// How many bytes of the file were handed on.
  std::uint64_t offset() const { return offset_; }
  /// The last of them: they identify the file by its content.
  const std::string& last() const { return last_; }
  /// The ranks whose lines it has, and whether the lines have marks.
  const host::RanksOfLog& ranks() const { return ranks_; }
  /// How the log ended, once the host has said so.
  const std::optional<host::LogEnd>& log_end() const { return end_; }
  /// Why there is no log, or no more of it; or empty.
  const std::string& fault() const { return fault_; }

 protected:
  virtual void on_bytes(std::string_view bytes) = 0;
  enum class Break { rotated, truncated, lost };
  /// The following bytes are from another file, or from the beginning of this one. `lost`: the
  /// place is gone, and so is every file that had it.
  virtual void on_break(Break what) = 0;
  /// The host's message, once a second, that it is still there.
  virtual void on_sign_of_life() {}

 private:
  void take(const host::Frame& frame);
  void pass_on(std::string_view bytes);
  void break_off(Break what);

  host::FrameReader reader_;
  std::string last_;
  std::uint64_t offset_ = 0;
  bool has_begun_ = false;
  std::string host_;
  host::RanksOfLog ranks_;
  std::optional<host::LogEnd> end_;
  std::string fault_;
};

}  // namespace dtool::cli
