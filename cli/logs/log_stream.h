// One machine's log as ssh/job/scripts/follow.sh prints it: bytes of the log, and lines between
// them that tell where they come from. Knows the place from which another connection can go on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dtool::cli {

class LogStream {
 public:
  /// `unique`: a path that no log has in it.
  explicit LogStream(std::string unique)
      : unique_(std::move(unique)), mark_("tail: " + unique_ + ": ") {}
  virtual ~LogStream() = default;

  /// What a host's command prints. What comes before the first mark is not of the log: a login
  /// shell's greeting, say.
  void add(std::string_view bytes);
  /// Another connection begins; what came half of a mark is not counted.
  void begin_again();
  /// The stream is whole: what looked like the beginning of a mark was none.
  void end();

  const std::string& unique() const { return unique_; }
  bool has_begun() const { return has_begun_; }
  /// Bytes of the file that have been handed on.
  std::uint64_t offset() const { return offset_; }
  /// The last of them, at most kFingerprint, as hexadecimal digits: tells the file by its content.
  std::string last_in_hex() const;

 protected:
  virtual void on_bytes(std::string_view bytes) = 0;
  /// The bytes that follow are of another file, or of this one from its beginning: `rotated`,
  /// `file truncated`, `lost` (neither the place nor a file that has it is there any more).
  virtual void on_break(std::string_view what) = 0;

 private:
  void pass_on(std::string_view bytes);
  void take_mark(std::string_view text);

  std::string unique_;
  std::string mark_;
  std::string held_;  ///< may be the beginning of a mark
  std::string last_;
  std::uint64_t offset_ = 0;
  bool has_begun_ = false;
};

/// A path of /proc/self/fd/3 in one of so many spellings that no log has it.
std::string make_unique_path();

}  // namespace dtool::cli
