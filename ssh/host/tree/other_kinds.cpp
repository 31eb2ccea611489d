// SPDX-License-Identifier: MIT
#include "ssh/host/tree/other_kinds.h"

#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace dtool::host {
namespace {

/// What is in the way of a tree's files.
class OtherKinds {
 public:
  explicit OtherKinds(TreeFolder& folder) : folder_(folder) {}

  void look_at(const std::string& name);
  void refuse() const;

 private:
  bool is_dtools(const std::string& name) const;
  bool has_others(const std::string& folder);
  bool is_below_file(const std::string& name);
  void add(const std::string& name, std::string_view what);

  TreeFolder& folder_;
  std::string above_;  ///< a file of the tree: the folders above it were looked at
  std::string found_;  ///< that stands where a folder is to be
  std::string sentences_;
  std::size_t count_ = 0;
};

bool OtherKinds::is_dtools(const std::string& name) const {
  return std::ranges::binary_search(folder_.manifest(), name);
}

/// Whether the folder, or one in it, is not from dtool, or holds something that is not.
bool OtherKinds::has_others(const std::string& folder) {
  const FileNames& manifest = folder_.manifest();
  const std::string prefix = folder + "/";
  const auto first = std::ranges::lower_bound(manifest, prefix);
  if (first == manifest.end() || !first->starts_with(prefix)) return true;
  return std::ranges::any_of(folder_.inside().list(folder), [&](const std::string& each) {
    const auto there = folder_.inside().look(prefix + each);
    return there &&
           (S_ISDIR(there->st_mode) ? has_others(prefix + each) : !is_dtools(prefix + each));
  });
}

/// Whether something else stands where a folder above the file is to be.
bool OtherKinds::is_below_file(const std::string& name) {
  if (!found_.empty() && name.starts_with(found_)) return true;
  for (std::size_t end = name.find('/'); end != name.npos; end = name.find('/', end + 1)) {
    if (above_.starts_with(std::string_view(name).substr(0, end + 1))) continue;
    const std::string folder = name.substr(0, end);
    const auto there = folder_.inside().look(folder);
    if (!there) break;
    if (S_ISDIR(there->st_mode)) continue;
    if (is_dtools(folder)) break;
    add(folder, S_ISLNK(there->st_mode) ? "is a link, and a folder is to be sent there"
                                        : "is no folder, and one is to be sent there");
    found_ = folder + "/";
    return true;
  }
  above_ = name;
  return false;
}

void OtherKinds::look_at(const std::string& name) {
  if (is_below_file(name)) return;
  const auto there = folder_.inside().look(name);
  if (there && S_ISDIR(there->st_mode) && has_others(name))
    add(name, "is a folder, and a file is to be sent there");
}

void OtherKinds::add(const std::string& name, std::string_view what) {
  constexpr std::size_t kFirst = 10;
  if (++count_ > kFirst) return;
  if (count_ > 1) sentences_ += "; ";
  sentences_.append(with_tilde(folder_.path() + "/" + name)).append(" ").append(what);
}

void OtherKinds::refuse() const {
  if (count_ > 0) throw Refused(sentences_, "move it away, or give another --code_path");
}

}  // namespace

void refuse_other_kinds(TreeFolder& folder, const FileNames& coming) {
  OtherKinds others(folder);
  for (const std::string& name : coming) others.look_at(name);
  others.refuse();
}

}  // namespace dtool::host
