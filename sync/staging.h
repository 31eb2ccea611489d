// SPDX-License-Identifier: MIT
// What a pull has received lies aside, in the folder `.dtool-partial` of its destination, until it
// is known to be whole. Then each file goes to its place, and nothing of another kind there makes
// way for it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ssh/host/files.h"
#include "sync/tree.h"

namespace dtool::tree_sync {

/// The folder's name; within it, rsync's folders of files that were cut off.
inline constexpr const char* kPartial = ".dtool-partial";

class Staging {
 public:
  /// `destination`: an absolute folder, which is there.
  explicit Staging(const std::filesystem::path& destination)
      : destination_(destination), folder_(destination / kPartial) {}

  const std::filesystem::path& folder() const { return folder_; }
  /// Makes the folder, and holds it against another pull to the same destination. Throws
  /// std::filesystem::filesystem_error, and std::runtime_error if another one has it.
  void make();

  /// Looks at what lies there. Returns the files that are new or others since the last look.
  std::vector<std::string> look();
  /// Before the host sends these files once more: remembers how they are.
  void remember(const std::vector<std::string>& names);
  /// Whether the file is text and has only grown since remember(). Then it is cut at its size of
  /// that time. Half a file of another kind, such as a checkpoint, is of no use.
  bool cut_to_remembered(const std::string& name) const;

  /// What stays aside, since something else is at its place.
  struct InTheWay {
    std::vector<std::string> other_kinds;  ///< a file, a link or a folder, and another one is there
    /// Names, each with something at its place that did not come so, or was touched since.
    std::vector<std::string> foreign;
  };
  /// Moves all but the files `left_out` to their places. Throws std::filesystem::filesystem_error.
  InTheWay place(const std::vector<std::string>& left_out, Foreign foreign = Foreign::refuse);

 private:
  struct Remembered {
    std::uint64_t size = 0;
    std::string sha256;
  };

  std::filesystem::path destination_;
  std::filesystem::path folder_;
  host::Descriptor held_;
  std::map<std::string, Look> seen_;
  std::map<std::string, Remembered> remembered_;
};

}  // namespace dtool::tree_sync
