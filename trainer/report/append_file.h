// A file that grows by whole pieces, for metrics.jsonl and TensorBoard's events: whoever reads it
// while it is written, or after the writer was killed, finds no half line.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace dtool::trainer {

/// What stood in the file stays, but for a last line without its end.
enum class HalfLine { keep, cut };

class AppendFile {
 public:
  /// Makes the file where it is not there. `HalfLine::cut` takes away what a machine that lost
  /// power, or a full disk, left after the last line break. Throws std::system_error.
  AppendFile(const std::filesystem::path& file, HalfLine half_line);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// All of `piece`, with one write, or none: where only a part fits, it is taken back. Throws
  /// std::system_error.
  void append(std::string_view piece);

 private:
  void cut_half_line();

  std::string name_;
  int descriptor_ = -1;
};

}  // namespace dtool::trainer
