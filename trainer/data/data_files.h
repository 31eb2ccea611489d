// Sees to it that the files of a data set lie on this machine before anything reads them, fetched
// or copied by one process while the others wait.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/data/download.h"
#include "trainer/data/transfer_progress.h"
#include "trainer/launch/environment.h"

namespace dtool::trainer {

/// When a file that is there already is compared with its checksum.
enum class Compared {
  always,
  when_others_are_missing,  ///< only so as not to mix two sets: a whole folder is taken as it is
};

/// One file of a data set. `NAME.gz` may lie there unpacked, as `NAME`, too.
struct DataFile {
  WantedFile wanted;  ///< without a sha256 it can only be there already
  Compared compared = Compared::always;
};

/// Where the files are and come from, as an experiment says it.
struct DataPlace {
  std::string path{};     ///< folder; may hold `~` and variables
  std::string copy_to{};  ///< a folder to copy them to and read them from; may be empty
  Mirrors mirrors{};      ///< none: nothing is downloaded
  std::string hint{};     ///< what to do when a file is missing and nothing is downloaded
};

/// Whether to tell of waiting for another process: one rank a machine does.
enum class Waits { told, silent };

/// The files' paths on this machine, in the order of `files`, once they are all there and right.
/// Throws UsageError when one is missing or another file than was meant, and as `download` does.
std::vector<std::filesystem::path> provide_files(const std::vector<DataFile>& files,
                                                 const DataPlace& place,
                                                 const Environment& environment, Waits waits,
                                                 TransferProgress& progress);

}  // namespace dtool::trainer
