// SPDX-License-Identifier: MIT
// Downloads one file of a data set from the first mirror that has it, and copes with failures of
// servers and network; proves what came by SHA-256.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/report/console.h"

namespace dtool::trainer {

// One transfer by libcurl. The library handles proxies and their variables, certificates, redirects
// and all protocols.

struct CurlRequest {
  std::string url;
  std::filesystem::path into;  ///< existing content counts as the beginning of the file
  std::chrono::seconds stall;  ///< less than 1 KB/s for this long ends the transfer
};

struct CurlResult {
  int code = 0;  ///< https://curl.se/libcurl/c/libcurl-errors.html; -1: the observer ended it
  int http_status = 0;  ///< the HTTP status of the last answer; 0 without one
  std::string error;    ///< libcurl's own sentence; empty if nothing failed
};

/// Called now and then with the number of bytes in the file, and the final number if the server
/// tells it. Returning false ends the transfer.
using CurlObserver = std::function<bool(std::int64_t here, std::optional<std::int64_t> total)>;

/// Transfers until the end or the first failure. The file is created when its first byte arrives.
CurlResult run_curl(const CurlRequest& request, const CurlObserver& observer);

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

}  // namespace dtool::trainer
