// SPDX-License-Identifier: MIT
// Downloads one file of a data set from the first mirror that has it, and copes with failures of
// servers and network.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/data/checksum.h"
#include "trainer/data/transfer_progress.h"

namespace dtool::trainer {

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
  std::chrono::milliseconds pause{1000};  ///< before the second round
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
