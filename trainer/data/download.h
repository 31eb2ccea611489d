// Fetches one file of a data set from the first mirror that has it, through every way in which a
// server and the network between can fail.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/data/checksum.h"
#include "trainer/data/transfer_progress.h"

namespace dtool::trainer {

/// The file that is meant, whoever sends it.
struct WantedFile {
  std::string name{};
  std::string sha256{};
  Counted counted = Counted::bytes;
  std::int64_t most_bytes = 0;  ///< a mirror that sends more is not listened to; 0: unknown
};

struct Mirrors {
  std::vector<std::string> urls{};  ///< of the folder that holds the file; tried in this order
  std::chrono::seconds stall{30};
};

/// What an attempt means for what comes next.
enum class Verdict {
  sent,            ///< all of it, as far as libcurl knows
  try_again,       ///< it may work later
  from_the_start,  ///< the server cannot go on where the file here ends
  next_mirror,     ///< this mirror will not do
  cannot_write     ///< no mirror will do: the disk here is full
};

/// Reads libcurl's code, as `CurlResult` has it, and the server's answer.
Verdict judge_attempt(int code, int http_status);

/// The address of `name` below a mirror's.
std::string address_of(const std::string& mirror, const std::string& name);

/// Puts the file into `folder`, whose lock the caller holds: under `name` + `.part`, where an
/// interrupted download goes on next time; once its checksum is right, on the disk and then under
/// its name. A mirror that fails for now is tried again, up to five times in all with growing
/// pauses, and any number of times as long as the file grows. Throws UsageError naming each mirror
/// and its reason when none has it.
void download(const WantedFile& file, const Mirrors& mirrors, const std::filesystem::path& folder,
              TransferProgress& progress);

/// Flushes the file `from` to the disk, then gives it its name `to`.
void name_when_whole(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace dtool::trainer
