// A folder, and the files below it by their names. Names come from outside: whatever they are, and
// whatever links lie there, nothing outside the folder is looked at, written or deleted.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ssh/host/files.h"

namespace dtool::host {

class Inside {
 public:
  /// Throws std::runtime_error if it cannot be entered.
  explicit Inside(const std::string& path);

  /// Whether folders on the way to a file are made where they are missing.
  enum class Way { as_it_is, made };
  /// The folder in which a file lies, and the last part of its name, which lasts as long as the
  /// name does.
  struct Spot {
    int folder = -1;  ///< -1: there is no such way, or it leads through something else than folders
    const char* name = "";
  };
  /// Quick for names that come sorted. The folder stays open until the next call.
  Spot find(const std::string& name, Way way = Way::as_it_is);

  /// What bears the name; a link is not followed.
  std::optional<struct stat> look(const std::string& name);
  /// As look, but not for folders.
  std::optional<struct stat> look_at_file(const std::string& name);
  std::string target_of(const std::string& link);
  Descriptor open_file(const std::string& name);

  /// Moves a file of another folder here. Throws std::runtime_error.
  void take(Inside& from, const std::string& name);
  /// Deletes files, and the folders that this leaves empty. What is a folder or not inside stays.
  /// Returns how many there were. Throws std::runtime_error.
  std::size_t remove(const std::vector<std::string>& names);
  /// Sets the mode of a folder, if it is one.
  void set_mode(const std::string& folder, mode_t mode);

  /// The names of all that lies in the folder itself.
  std::vector<std::string> list() const;
  /// Deletes a folder of the folder itself with all that is in it, as far as that can be.
  void remove_folder(const std::string& name);
  /// Closes what is open below the folder. To be called before others move folders there.
  void forget() { open_.clear(); }

 private:
  void let_write(const std::string& name, int folder);
  void take_leave_back();

  struct Open {
    std::string path;
    Descriptor folder;
  };
  Descriptor root_;
  std::vector<Open> open_;                             ///< one below the other
  std::vector<std::pair<std::string, mode_t>> modes_;  ///< of folders that are writable for now
};

}  // namespace dtool::host
