// SPDX-License-Identifier: MIT
// Downloads one file of a data set from the first mirror that has it, and copes with failures of
// servers and network; shows its progress, and proves what came by SHA-256.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/report/console.h"

namespace dtool::trainer {

// Shows the progress of a download or copy: a bar on a terminal, occasional lines in a log.

/// `9.6 MB`, in powers of ten.
std::string human_bytes(std::int64_t bytes);

/// How far a transfer is.
struct TransferState {
  std::string name{};
  std::int64_t begun_with = 0;  ///< bytes that were here before
  std::int64_t done = 0;        ///< bytes that are here
  std::optional<std::int64_t> total{};
  std::chrono::duration<double> passed{};
};

enum class TransferBar { no, yes };

/// `a  50 % of 2.0 MB  1.0 MB/s`, with a bar after the name.
std::string transfer_text(const TransferState& state, TransferBar bar);

/// Writes to stdout.
class TransferProgress {
 public:
  /// `prefix` precedes each line, such as `red02: `.
  explicit TransferProgress(std::string prefix) : prefix_(std::move(prefix)) {}

  /// A new file begins, of which `done` bytes are here.
  void begin(const std::string& name, std::int64_t done);
  /// Shows the progress if it is time to.
  void update(std::int64_t done, std::optional<std::int64_t> total);
  /// The file is complete: prints one line with its size, `source` and time.
  void finish(std::int64_t size, const std::string& source);
  /// Prints a separate line.
  void say(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;

  std::string prefix_;
  TrainingConsole console_;
  std::string name_;
  std::int64_t begun_with_ = 0;
  Clock::time_point begin_{};
  Clock::time_point shown_{};
};

// SHA-256 of files: proves that a download is the right file.

/// Which bytes of a file count: its own, or for a gzip file the unpacked ones (compressors produce
/// different bytes for the same content, and mirrors recompress).
enum class Counted { bytes, content };

/// The SHA-256 of a file as 64 lower-case hexadecimal digits. Throws std::runtime_error when the
/// file cannot be read or, for its content, when its gzip data is damaged or cut short.
std::string sha256_of(const std::filesystem::path& file, Counted counted);

/// The wanted file, independent of the mirror.
struct WantedFile {
  std::string name{};
  std::string sha256{};
  Counted counted = Counted::bytes;
  std::int64_t most_bytes = 0;  ///< a mirror that sends more is abandoned; 0: unknown
};

struct Mirrors {
  std::vector<std::string> urls{};  ///< folders that hold the file; tried in this order
  std::chrono::seconds stall{30};
  std::chrono::milliseconds pause{1000};  ///< the pause before the second round
};

/// What the result of an attempt means for the next step.
enum class Verdict {
  sent,            ///< everything was sent, according to libcurl
  try_again,       ///< another attempt may succeed
  from_the_start,  ///< the server cannot continue a partial download
  next_mirror,     ///< this mirror is of no use
  cannot_write     ///< no mirror is of use: the disk here is full
};

/// Judges libcurl's code (as in `CurlResult`) and the server's status.
Verdict judge_attempt(int code, int http_status);

/// The pause before a round, from the second (1) on: around `first`, and twice as long each time.
/// Jittered, so that many machines that were refused together do not come back together.
std::chrono::milliseconds pause_before(int round, std::chrono::milliseconds first);

/// The URL of `name` at a mirror.
std::string address_of(const std::string& mirror, const std::string& name);

/// Puts the file into `folder`; the caller holds the folder's lock. The download goes to `name` +
/// `.part`, where an interrupted one is continued next time. Once its checksum is right, the file
/// is flushed and gets its name. A mirror with a temporary failure is tried again: up to five times
/// in all with growing pauses, and any number of times while the file grows. Throws UsageError
/// naming each mirror and its reason if all fail.
void download(const WantedFile& file, const Mirrors& mirrors, const std::filesystem::path& folder,
              TransferProgress& progress);

/// Flushes the file `from` to the disk, then renames it to `to`.
void name_when_whole(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace dtool::trainer
