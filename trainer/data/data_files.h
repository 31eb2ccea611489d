// SPDX-License-Identifier: MIT
// Makes sure that the files of a data set are on this machine before anything reads them. One
// process downloads or copies them while the others wait.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/data/download.h"
#include "trainer/settings/experiment.h"

namespace dtool::trainer {

/// When an existing file is compared with its checksum.
enum class Compared {
  always,
  /// Files are accepted unchecked if all are there; the check prevents a mix of two sets.
  when_others_are_missing,
};

/// One file of a data set. `NAME.gz` may also be there unpacked, as `NAME`.
struct DataFile {
  WantedFile wanted;  ///< the file; without a sha256 it must already be there
  Compared compared = Compared::always;
};

/// Where the files are and where they come from, according to an experiment.
struct DataPlace {
  std::string path{};     ///< a folder; may contain `~` and variables
  std::string copy_to{};  ///< a folder to copy them to and read them from; may be empty
  Mirrors mirrors{};      ///< empty: nothing is downloaded
  /// Advice: what the user can do if a file is missing and nothing is downloaded.
  std::string hint{};
};

/// Whether to report the wait for another process: one rank per machine does.
enum class Waits { told, silent };

/// The files' paths on this machine, in the order of `files`, after all are there and correct.
/// Throws UsageError if one is missing or is the wrong file, and as `download` does.
std::vector<std::filesystem::path> provide_files(const std::vector<DataFile>& files,
                                                 const DataPlace& place,
                                                 const Environment& environment, Waits waits,
                                                 TransferProgress& progress);

// Paths that mean a different folder on each machine: they contain `~` and environment variables.

/// `text` with a leading `~` replaced by HOME and each `$NAME` or `${NAME}` by that variable. `$$`
/// gives one `$`. Throws UsageError naming `key` and the variable if it is unset or empty, so that
/// `$TMPDIR/data` never becomes `/data`.
std::filesystem::path expand_path(const std::string& key, const std::string& text,
                                  const Environment& environment);

}  // namespace dtool::trainer
