// One machine's log as dtool-host sends it (host::LogRequest): its bytes, and where they are from.
// Knows the place from which another connection can go on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ssh/host/frames.h"

namespace dtool::cli {

class LogStream {
 public:
  virtual ~LogStream() = default;

  /// What dtool-host prints. What is no log becomes a fault, and nothing behind it is taken.
  void add(std::string_view bytes);
  /// Another connection begins.
  void begin_again();

  bool has_begun() const { return has_begun_; }
  /// Who the host says it is.
  const std::string& host() const { return host_; }
  /// Bytes of the file that have been handed on.
  std::uint64_t offset() const { return offset_; }
  /// The last of them: they tell the file by its content.
  const std::string& last() const { return last_; }
  /// How the log ended, once the host has said it.
  const std::optional<host::LogEnd>& log_end() const { return end_; }
  /// Why there is no log, or no more of it; or empty.
  const std::string& fault() const { return fault_; }

 protected:
  virtual void on_bytes(std::string_view bytes) = 0;
  enum class Break { rotated, truncated, lost };
  /// The bytes that follow are of another file, or of this one from its beginning. `lost`: neither
  /// the place nor a file that has it is there any more.
  virtual void on_break(Break what) = 0;
  /// The host is there, as it says once a second.
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
  std::optional<host::LogEnd> end_;
  std::string fault_;
};

}  // namespace dtool::cli
