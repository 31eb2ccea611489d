// SPDX-License-Identifier: MIT
// The answer to a launcher that asks what is to be copied, and which files came by copies.
#include "ssh/host/tree/copy_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "killfiles/channel/sha256.h"
#include "ssh/host/files.h"
#include "ssh/host/frame_input.h"
#include "ssh/host/strangers.h"
#include "ssh/host/tree/inside.h"
#include "ssh/host/tree/tree_folder.h"

namespace dtool::host {

namespace {

constexpr const char* kMove = "move it away, or name another folder";
constexpr const char* kFree = "free some space there, or name a folder on another disk";

constexpr std::uint64_t kBlock = 4096;  // a file's room on most disks is a multiple of it

/// One answer on its way.
class Looking {
 public:
  explicit Looking(const CopyRequest& request);

  void look_at(const CopyEntry& entry);
  CopyReply finish();

 private:
  /// A file system that is mounted below the folder.
  struct Mounted {
    std::string name;  ///< the name of the first folder there that lacks something
    std::uint64_t free = 0;
    std::uint64_t needed = 0;
  };
  enum class Found { as_it_was, unsettled, unsure, lacking };

  Found compare(const CopyEntry& entry, const std::optional<struct stat>& there);
  Found compare_file(const CopyEntry& entry, const struct stat& there);
  bool leads_over_strangers(const CopyEntry& entry) const;
  void refuse_foreign(const CopyEntry& entry, const struct stat& there);
  void add_lacking(const CopyEntry& entry);
  Mounted* mounted_for(const std::string& name);
  void block(const std::string& name, const std::string& why, const std::string& hint = kMove);
  std::uint64_t rounded(std::uint64_t bytes) const {
    return (bytes + kBlock - 1) / kBlock * kBlock;
  }
  void look_at_room();
  void settle();
  void note();

  const CopyRequest& request_;
  CopyReply reply_;
  std::string nearest_;  ///< the folder, or the nearest one above it that is there
  std::optional<Inside> inside_;
  std::optional<Inside> parts_;
  std::uint64_t place_ = 0;  ///< the place of the next entry in the listing
  std::uint64_t new_files_ = 0;
  dev_t device_ = 0;  ///< the device of the folder
  std::map<dev_t, Mounted> mounted_;
  std::uint64_t largest_ = 0;         ///< file that is to go to one of these
  std::vector<CopyEntry> unsettled_;  ///< the unsettled entries, collected if the request settles
  std::string strangers_folder_;      ///< the last folder below the folder that is somebody else's
  CopiedFiles copied_;
};

/// A folder's own set-group-id bit, as in a folder that a group shares, is the host's matter.
mode_t mode_for(const CopyEntry& entry, const struct stat& there) {
  const mode_t own = S_ISDIR(there.st_mode) ? there.st_mode & S_ISGID : 0;
  return own | (entry.mode & kPermissions);
}

bool has_other_mode(const CopyEntry& entry, const struct stat& there) {
  return (there.st_mode & 07777U) != mode_for(entry, there);
}

std::string without_slash(const std::string& name) {
  return name.ends_with('/') ? name.substr(0, name.size() - 1) : name;
}

Looking::Looking(const CopyRequest& request) : request_(request) {
  const std::string path = expand_home(request.place.folder);
  if (!path.starts_with('/')) throw BadMessage("no folder can be " + path);
  reply_.folder = nearest_ = path;
  reply_.reads_zstd = reads_zstd();
  refuse_obstacle(path);
  struct stat status {};
  while (::stat(nearest_.c_str(), &status) != 0 && nearest_ != "/") nearest_ = folder_of(nearest_);
  if (::faccessat(AT_FDCWD, nearest_.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    throw Refused("cannot write into " + nearest_,
                  "name another folder, or let the user there write into this one");
  if (const auto stranger = find_stranger(path, Strangers::all))
    reply_.stranger = to_string(*stranger);
  if (nearest_ != path) return;
  inside_.emplace(path);
  device_ = status.st_dev;
  const std::string aside = path + "/" + copy_aside();
  reply_.is_unsettled = exists(aside);
  reply_.owner = other_owner(path, request.place);
  if (is_folder(aside + "/parts")) parts_.emplace(aside + "/parts");
}

void Looking::block(const std::string& name, const std::string& why, const std::string& hint) {
  constexpr std::size_t kFirst = 10;
  if (reply_.blocked.empty()) reply_.blocked_hint = hint;
  if (reply_.blocked.size() < kFirst)
    reply_.blocked.push_back(reply_.folder + "/" + without_slash(name) + " " + why);
}

/// Folders come before what is in them.
bool Looking::leads_over_strangers(const CopyEntry& entry) const {
  return !strangers_folder_.empty() && entry.name.starts_with(strangers_folder_);
}

Looking::Found Looking::compare_file(const CopyEntry& entry, const struct stat& there) {
  if (!S_ISREG(there.st_mode) || static_cast<std::uint64_t>(there.st_size) != entry.size)
    return Found::lacking;
  const bool is_changed = !has_time(entry, there) || has_other_mode(entry, there);
  const Found as_it_is = is_changed ? Found::unsettled : Found::as_it_was;
  // Somebody else may have put it there: size and time can be set.
  const bool is_own =
      reply_.stranger.empty() && !is_strangers(there.st_uid) && !leads_over_strangers(entry);
  if (is_own && has_time(entry, there)) return as_it_is;
  if (entry.sha256.empty()) return Found::unsure;
  return inside_->sum_of(entry.name) == entry.sha256 ? as_it_is : Found::lacking;
}

Looking::Found Looking::compare(const CopyEntry& entry, const std::optional<struct stat>& there) {
  if (!there) return Found::lacking;
  const bool is_folder = entry.name.ends_with('/');
  if (is_folder && !S_ISDIR(there->st_mode)) {
    block(entry.name, S_ISLNK(there->st_mode) ? "is a link, and a folder is to be copied there"
                                              : "is no folder, and one is to be copied there");
    return Found::lacking;
  }
  if (!is_folder && S_ISDIR(there->st_mode)) {
    block(entry.name, "is a folder, and a file is to be copied there");
    return Found::lacking;
  }
  if (is_folder && is_strangers(there->st_uid) && !leads_over_strangers(entry))
    strangers_folder_ = entry.name;
  if (is_folder)
    return has_other_mode(entry, *there) || !has_time(entry, *there) ? Found::unsettled
                                                                     : Found::as_it_was;
  const bool is_same = S_ISLNK(there->st_mode) && inside_->target_of(entry.name) == entry.target;
  const Found as_link = is_same ? Found::as_it_was : Found::lacking;
  const Found found = entry.target.empty() ? compare_file(entry, *there) : as_link;
  if (found == Found::lacking) refuse_foreign(entry, *there);
  if (found == Found::as_it_was) copied_.add(*there);
  return found;
}

/// What a person put there, or edited there, is not replaced.
void Looking::refuse_foreign(const CopyEntry& entry, const struct stat& there) {
  if (!request_.place.refuses_foreign || copied_.has(there)) return;
  const bool is_kind = S_ISREG(there.st_mode) || S_ISLNK(there.st_mode);
  if (is_kind)
    block(entry.name, "is not as dtool copied it, and differs",
          std::string(kMove).append("; --force replaces files and links"));
  else
    block(entry.name, "is no file");
}

/// Null if the file goes to the folder's own file system.
Looking::Mounted* Looking::mounted_for(const std::string& name) {
  struct stat nearest {};
  if (!inside_) return nullptr;
  inside_->look(without_slash(name));
  if (::fstat(inside_->nearest(), &nearest) != 0 || nearest.st_dev == device_) return nullptr;
  const auto [found, is_new] = mounted_.try_emplace(nearest.st_dev);
  struct statvfs room {};
  if (is_new && ::fstatvfs(inside_->nearest(), &room) == 0)
    found->second = {folder_of(name), free_bytes(room)};
  return &found->second;
}

void Looking::add_lacking(const CopyEntry& entry) {
  add_place(reply_.lacks, place_);
  ++new_files_;
  std::uint64_t bytes = entry.size;
  if (parts_ && bytes > 0) {
    const auto part = parts_->look(part_name(entry));
    const bool is_part = part && S_ISREG(part->st_mode) && part->st_size > 0;
    if (is_part) {
      const auto have = std::min(static_cast<std::uint64_t>(part->st_size), entry.size);
      reply_.parts.push_back({place_, have});
      bytes -= have;
    }
  }
  if (Mounted* mounted = mounted_for(entry.name)) {
    // Its part grows in the folder, and goes when the file is there.
    mounted->needed += rounded(entry.size);
    largest_ = std::max(largest_, rounded(bytes));
    return;
  }
  reply_.needed += rounded(bytes);
  if (entry.size == 0) reply_.needed += kBlock;
}

void Looking::look_at(const CopyEntry& entry) {
  const auto there = inside_ ? inside_->look(without_slash(entry.name)) : std::nullopt;
  switch (compare(entry, there)) {
    case Found::as_it_was:
      break;
    case Found::unsettled:
      reply_.is_unsettled = true;
      if (request_.settles) unsettled_.push_back(entry);
      break;
    case Found::unsure:
      add_place(reply_.unsure, place_);
      break;
    case Found::lacking:
      add_lacking(entry);
      break;
  }
  ++place_;
}

void Looking::look_at_room() {
  struct statvfs room {};
  if (::statvfs(nearest_.c_str(), &room) != 0)
    throw Refused(with_reason("cannot ask for the room in " + nearest_));
  reply_.free = free_bytes(room);
  reply_.needed += largest_;
  if (room.f_blocks == 0 && reply_.needed > 0)  // so it is with /proc and /sys
    throw Refused(nearest_ + " is on a file system that has no room for files",
                  "name a folder on a disk");
  for (const auto& [device, each] : mounted_)
    if (each.needed > each.free)
      block(each.name,
            "is another disk with too little room: " + std::to_string(each.needed) +
                " bytes are needed there and " + std::to_string(each.free) + " are free",
            kFree);
  if (room.f_files > 0 && room.f_favail < new_files_) {
    if (reply_.blocked.empty()) reply_.blocked_hint = kFree;
    reply_.blocked.push_back(nearest_ + " has room for " + std::to_string(room.f_favail) +
                             " more files, and " + std::to_string(new_files_) + " are lacking");
  }
}

/// Files first: whoever changes a folder's files changes its time.
void Looking::settle() {
  CopyFolder folder(request_.place);
  if (folder.holder()) return;
  Inside& inside = folder.inside();
  for (auto entry = unsettled_.rbegin(); entry != unsettled_.rend(); ++entry) {
    const std::string name = without_slash(entry->name);
    try {
      const auto there = inside.look(name);
      if (!there) throw std::runtime_error(with_reason(name));
      // Only its owner may; the content is as it should be.
      const bool is_anothers = there->st_uid != ::geteuid() && ::geteuid() != 0;
      if (S_ISLNK(there->st_mode) || is_anothers) continue;
      inside.set_facts(name, mode_for(*entry, *there), time_of(*entry));
    } catch (const std::runtime_error& error) {
      throw Refused("cannot set mode and time of " + folder.path() + "/" + error.what());
    }
  }
  folder.finish();
  reply_.is_unsettled = false;
}

/// All is there as it was sent. The times of what was settled have changed since it was looked at.
void Looking::note() {
  for (const CopyEntry& entry : unsettled_) {
    const auto there = inside_->look_at_file(entry.name);
    if (there) copied_.add(*there);
  }
  copied_.keep();
}

CopyReply Looking::finish() {
  look_at_room();
  const bool is_all_there = reply_.lacks.empty() && reply_.unsure.empty() && reply_.blocked.empty();
  if (request_.settles && is_all_there && reply_.is_unsettled) settle();
  if (is_all_there) note();
  return std::move(reply_);
}

}  // namespace

CopyReply answer_copy(const CopyRequest& request, FrameInput& input) {
  if (request.is_compressed && !reads_zstd()) {  // then it is asked again
    input.leave();
    return {};
  }
  Looking looking(request);
  PackageReader listing(input, std::chrono::milliseconds(request.patience_ms),
                        request.is_compressed ? Compressed::yes : Compressed::no);
  while (const auto frame = listing.next()) looking.look_at(open<CopyEntry>(*frame));
  return looking.finish();
}

namespace {

/// Of more files than that, those that came first are forgotten.
constexpr std::size_t kMostKept = std::size_t{1} << 24U;
constexpr std::size_t kEach = sizeof(std::uint64_t);
constexpr int kWaitForList = 10'000;  // milliseconds

std::string list_path() {
  return expand_home("~/.dtool/copied");
}

std::uint64_t hash_of(const struct stat& file) {
  const Digest digest = sha256(stamp_of(file, ""));
  std::uint64_t hash = 0;
  std::memcpy(&hash, digest.data(), kEach);
  return hash;
}

std::vector<std::uint64_t> hashes_in(std::string_view text) {
  std::vector<std::uint64_t> hashes(text.size() / kEach);
  if (!hashes.empty()) std::memcpy(hashes.data(), text.data(), hashes.size() * kEach);
  return hashes;
}

std::string_view bytes_of(const std::vector<std::uint64_t>& hashes) {
  return {reinterpret_cast<const char*>(hashes.data()), hashes.size() * kEach};
}

}  // namespace

void CopiedFiles::read() {
  if (known_) return;
  known_ = hashes_in(read_file(list_path(), kLargestList).value_or(""));
  std::ranges::sort(*known_);
}

bool CopiedFiles::has(const struct stat& file) {
  read();
  return std::ranges::binary_search(*known_, hash_of(file));
}

void CopiedFiles::add(const struct stat& file) {
  added_.push_back(hash_of(file));
}

void CopiedFiles::keep() {
  read();
  std::ranges::sort(added_);
  std::vector<std::uint64_t> added;
  std::ranges::set_difference(added_, *known_, std::back_inserter(added));
  if (added.empty()) return;
  const std::string path = list_path();
  if (!make_folders(folder_of(path))) return;
  const Descriptor lock = lock_file(path + ".lock", kWaitForList);
  if (!lock.is_open()) return;
  try {
    // Others may have added some since.
    std::vector<std::uint64_t> all = hashes_in(read_file(path, kLargestList).value_or(""));
    all.insert(all.end(), added.begin(), added.end());
    if (all.size() > kMostKept) all.erase(all.begin(), all.end() - kMostKept);
    write_file(path, std::string(bytes_of(all)));
  } catch (const std::runtime_error&) {
  }
}

}  // namespace dtool::host
