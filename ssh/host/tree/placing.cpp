// SPDX-License-Identifier: MIT
#include "ssh/host/tree/placing.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>

#include "killfiles/channel/sha256.h"
#include "ssh/host/tree/copy_folder.h"
#include "ssh/host/tree/kept_copy.h"

namespace dtool::host {

namespace {

/// Whether the file of that name has the content that is listed. It is read.
bool has_content(Inside& inside, const CopyEntry& entry) {
  return !entry.sha256.empty() && inside.sum_of(entry.name).starts_with(entry.sha256);
}

bool is_same(const struct stat& one, const struct stat& other) {
  return one.st_ino == other.st_ino && one.st_size == other.st_size &&
         one.st_ctim.tv_sec == other.st_ctim.tv_sec && one.st_ctim.tv_nsec == other.st_ctim.tv_nsec;
}

/// A file of that size, or a link to that target.
bool is_of_form(Inside& inside, const CopyEntry& entry, const struct stat& file) {
  if (!entry.target.empty())
    return S_ISLNK(file.st_mode) && inside.target_of(entry.name) == entry.target;
  return S_ISREG(file.st_mode) && static_cast<std::uint64_t>(file.st_size) == entry.size;
}

}  // namespace

/// A file has its time there only once its SHA-256 was right, but is not yet on the disk. An
/// earlier tree may have had another file of that name. Some file systems keep whole seconds.
std::optional<struct stat> Aside::find(const Listed& file) {
  const CopyEntry& entry = file.entry;
  auto there = inside_.look(entry.name);
  const bool is_it = there && is_of_form(inside_, entry, *there) &&
                     (!entry.target.empty() || (is_known_ && has_time(entry, *there)) ||
                      has_content(inside_, entry));
  return is_it ? there : std::nullopt;
}

std::uint64_t Aside::part_of(const CopyEntry& entry) const {
  struct stat part {};
  const std::string path = path_ + "/" + copy_aside() + "/parts/" + part_name(entry);
  const bool is_there = ::lstat(path.c_str(), &part) == 0 && S_ISREG(part.st_mode);
  return is_there ? std::min(static_cast<std::uint64_t>(part.st_size), entry.size) : 0;
}

void Aside::make_way(const std::string& name) {
  for (std::size_t end = name.find('/'); end != name.npos; end = name.find('/', end + 1)) {
    const std::string folder = name.substr(0, end);
    const auto there = inside_.look_at_file(folder);
    if (!there) continue;
    inside_.drop(folder);
    return inside_.forget();
  }
  const auto there = inside_.look(name);
  if (there && S_ISDIR(there->st_mode)) inside_.remove_folder(name);
}

void Aside::give(const CopyEntry& entry, const struct stat& found, Inside& code) {
  const std::string& name = entry.name;
  const auto now = inside_.look(name);
  if (!now || !is_same(*now, found)) throw std::runtime_error(name + " was changed in " + path_);
  if (code.take_if_near(inside_, name, name)) return;
  const std::string beside = name.substr(0, name.rfind('/') + 1) + ".~dtool~part";
  code.drop(beside);  // the leftover of an earlier push that was interrupted
  const Inside::Spot spot = code.find(beside);
  if (!entry.target.empty()) {
    if (::symlinkat(entry.target.c_str(), spot.folder, spot.name) != 0)
      throw std::runtime_error(with_reason(name));
  } else {
    copy_file(inside_, code, name, beside);
    code.flush({beside});
  }
  code.take(code, beside, name);
}

/// Whether dtool put it there, and nobody has changed it since.
bool Placing::is_own(const std::string& name, const struct stat& here) const {
  const FileNames& manifest = folder_.manifest();
  const auto found = std::ranges::lower_bound(manifest, name);
  if (found == manifest.end() || *found != name) return false;
  if (folder_.whole().empty()) return !std::ranges::binary_search(edited_, name);
  const auto place = static_cast<std::size_t>(found - manifest.begin());
  return folder_.stamps().at(place) == stamp_of(here, name);
}

/// Whether the file here has the content that is listed.
bool Placing::is_like(const Listed& file, const struct stat& here) {
  const CopyEntry& entry = file.entry;
  if (!is_of_form(folder_.inside(), entry, here)) return false;
  const bool is_known = !basis_.empty() && folder_.whole() == basis_;
  return !entry.target.empty() || (is_known && has_time(entry, here) && is_own(entry.name, here)) ||
         has_content(folder_.inside(), entry);
}

void Placing::look(PlaceReply& reply) {
  constexpr std::size_t kFirst = 10;  // files that are named
  FileNames names;
  for (const Listed& file : change_.files) names.push_back(file.entry.name);
  refuse_other_kinds(folder_, names);
  if (folder_.whole().empty()) edited_ = folder_.find_edited();
  FileNames foreign;
  for (const Listed& file : change_.files) {
    const CopyEntry& entry = file.entry;
    const auto here = folder_.inside().look_at_file(entry.name);
    const auto aside = aside_.find(file);
    const bool may_go = !here || !refuses_foreign_ || is_own(entry.name, *here);
    if (aside && may_go) {
      if (!std::ranges::binary_search(folder_.manifest(), entry.name)) added_.push_back(entry.name);
      files_.push_back({entry.name, here, aside});
    } else if (here && is_like(file, *here)) {
      files_.push_back({entry.name, here});
    } else if (!may_go) {
      foreign.push_back(entry.name);
    } else {
      add_place(reply.lacks, file.place);
      aside_.make_way(entry.name);
      if (const std::uint64_t bytes = aside_.part_of(entry))
        reply.parts.push_back({file.place, bytes});
    }
  }
  FileNames lost;
  for (const std::string& name : names_without(folder_.manifest(), change_.names)) {
    going_.push_back({name, folder_.inside().look_at_file(name)});
    const auto& here = going_.back().here;
    if (here && refuses_foreign_ && !is_own(name, *here)) lost.push_back(name);
  }
  foreign.insert(foreign.begin(), lost.begin(), lost.end());
  reply.foreign = static_cast<std::int64_t>(foreign.size());
  foreign.resize(std::min(foreign.size(), kFirst));
  reply.first = std::move(foreign);
}

/// Looking may have taken minutes.
void Placing::require_unchanged(const Seen& seen) {
  const auto now = folder_.inside().look_at_file(seen.name);
  const bool is_unchanged =
      now.has_value() == seen.here.has_value() && (!now || is_same(*now, *seen.here));
  if (!is_unchanged) refuse_change(seen.name);
}

void Placing::refuse_change(const std::string& name) const {
  throw Refused(
      with_tilde(folder_.path() + "/" + name) + " was changed while the code was looked at",
      "the same command looks once more");
}

/// A file of the right content, with its mode and time.
void Placing::set_facts(const CopyEntry& entry) {
  const auto here = folder_.inside().look(entry.name);
  const mode_t mode = entry.mode & kPermissions;
  if (!here || !S_ISREG(here->st_mode)) return;
  if ((here->st_mode & 07777U) == mode && has_time(entry, *here)) return;
  try {
    folder_.inside().set_facts(entry.name, mode, time_of(entry));
  } catch (const std::runtime_error& error) {
    throw Refused("cannot set mode and time of " + folder_.path() + "/" + error.what(),
                  "let its owner delete it");
  }
}

/// The record of a file in its place, if it is one that is listed so.
std::string Placing::stamp_in_place(const CopyEntry& entry) {
  const auto here = folder_.inside().look_at_file(entry.name);
  if (!here || !is_of_form(folder_.inside(), entry, *here))
    throw std::runtime_error(entry.name +
                             " is not what it should be: does something else write in " +
                             folder_.path() + "?");
  return stamp_of(*here, entry.name);
}

std::size_t Placing::put(const std::string& tree) {
  Inside& here = folder_.inside();
  const FileNames before = folder_.manifest();
  const FileNames old_stamps = folder_.stamps();
  for (const std::vector<Seen>* all : {&files_, &going_})
    for (const Seen& each : *all) require_unchanged(each);
  const FileNames edited = folder_.whole().empty() && refuses_foreign_
                               ? names_without(folder_.find_edited(), edited_)
                               : FileNames();
  if (!edited.empty()) refuse_change(edited.front());
  folder_.begin_change();
  // They are in the manifest before they exist, so that all leftovers are known as dtool's.
  if (!added_.empty()) folder_.write_manifest(names_of_both(before, added_));
  // A file may take a folder's place.
  const std::size_t removed = here.remove(names_without(before, change_.names));
  // The stamps of the change's files, each taken as soon as the file is in its place.
  FileNames stamps;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const CopyEntry& entry = change_.files.at(i).entry;
    if (files_[i].aside) {
      aside_.give(entry, *files_[i].aside, here);
    } else {
      require_unchanged(files_[i]);
    }
    set_facts(entry);
    stamps.push_back(stamp_in_place(entry));
  }
  here.take_leave_back();
  const auto& folders = change_.folders;
  for (auto each = folders.rbegin(); each != folders.rend(); ++each)
    here.set_mode(each->name, each->mode);
  folder_.remove_marks();
  // Files that are not in the change have stayed.
  FileNames all;
  all.reserve(change_.names.size());
  std::size_t next = 0;
  auto old = before.begin();
  for (const std::string& name : change_.names) {
    if (next < files_.size() && files_[next].name == name) {
      all.push_back(std::move(stamps[next++]));
    } else {
      old = std::lower_bound(old, before.end(), name);
      all.push_back(old_stamps.at(static_cast<std::size_t>(old - before.begin())));
    }
  }
  folder_.end_change(tree, change_.names, all);
  return removed;
}

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
  std::string found_;  ///< the name of what stands where a folder is to be
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
