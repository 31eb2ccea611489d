// SPDX-License-Identifier: MIT
#include "ssh/host/tree/tree_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <unordered_set>

#include "killfiles/channel/sha256.h"
#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/strangers.h"
#include "ssh/wire/message.h"
#include "ssh/wire/words.h"

namespace dtool::host {

namespace {

constexpr int kForTreeLock = 600'000;  // milliseconds

struct stat status_of(const std::string& path) {
  struct stat status {};
  ::stat(path.c_str(), &status);
  return status;
}

void refuse_strangers_folder(const std::string& path) {
  if (const auto stranger = find_stranger(path, Strangers::uninvited))
    throw Refused("the folder " + to_string(*stranger) + ", who could put other code there",
                  "name a folder of your own with --code_path");
}

/// A name for the folder, readable if possible.
std::string key_of(const std::string& path) {
  constexpr std::size_t kLongest = 150;
  const auto is_plain = [](char each) {
    return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
           (each >= '0' && each <= '9') ||
           std::string_view("._/@-").find(each) != std::string::npos;
  };
  if (path.size() > kLongest || !std::ranges::all_of(path, is_plain)) return to_hex(sha256(path));
  std::string key = path;
  std::ranges::replace(key, '/', '%');
  return key;
}

void add_number(std::string& text, std::uint64_t number, int base = 10) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, base).ptr;
  text.append(digits.data(), end);
  text += ' ';
}

/// `SECONDS.NANOSECONDS0`, as find prints times.
void add_time(std::string& text, const timespec& time) {
  if (time.tv_sec < 0) text += '-';
  add_number(text, static_cast<std::uint64_t>(std::abs(time.tv_sec)));
  const std::size_t point = text.size() - 1;
  // One more digit than it has, for zeros in front, and in its place the point.
  text.pop_back();
  add_number(text, 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec));
  text[point] = '.';
  text.back() = '0';
  text += ' ';
}

/// The field of that place in a stamp: kind, mode, inode, size, time; or empty.
std::string_view field_of(std::string_view stamp, int place) {
  for (; place > 0; --place) {
    const std::size_t end = stamp.find(' ');
    if (end == stamp.npos) return {};
    stamp.remove_prefix(end + 1);
  }
  return stamp.substr(0, stamp.find(' '));
}

/// The length of the line in `stamps` that begins the text, if it is of that file; else 0.
std::size_t length_of_stamp(std::string_view stamps, const std::string& name) {
  constexpr int kBlanks = 5;
  std::size_t at = 0;
  for (int blank = 0; blank < kBlanks && at != stamps.npos; ++blank)
    at = stamps.find(' ', at + (blank == 0 ? 0 : 1));
  const std::string rest = " ./" + name + "\n";
  if (at == stamps.npos || !stamps.substr(at).starts_with(rest)) return 0;
  return at + rest.size();
}

}  // namespace

Refused another_is_sending() {
  return Refused("another dtool is sending another tree there",
                 "try again when it has, or give each a folder of its own with --code_path");
}

std::string with_tilde(const std::string& path) {
  const std::string home = expand_home("~/");
  return path.starts_with(home) ? "~/" + path.substr(home.size()) : path;
}

void refuse_obstacle(const std::string& path) {
  constexpr const char* kMove = "move it away, or name another folder";
  for (std::size_t end = 1; end != path.npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    struct stat seen {};
    if (::lstat(part.c_str(), &seen) != 0) return;
    const bool is_link = S_ISLNK(seen.st_mode);
    if (is_link && ::stat(part.c_str(), &seen) != 0)
      throw Refused(part + " is a link that leads nowhere", kMove);
    if (!S_ISDIR(seen.st_mode)) throw Refused(part + " is there, but is not a folder", kMove);
  }
}

std::string made_folder(const std::string& path) {
  const std::string expanded = expand_home(path);
  // Below the home folder what dtool makes is the user's alone; elsewhere the umask says it, since
  // a folder there may be one that several users share.
  std::optional<OwnersAlone> alone;
  if (expanded.starts_with(expand_home("~/"))) alone.emplace();
  if (!make_folders(expanded)) {
    refuse_obstacle(expanded);
    ::mkdir(expanded.c_str(), 0777);  // the error of this call says why
    throw Refused(with_reason("cannot make the folder " + expanded));
  }
  std::array<char, PATH_MAX> real;
  if (::realpath(expanded.c_str(), real.data()) == nullptr)
    throw Refused(with_reason("cannot enter " + expanded));
  return real.data();
}

std::string made_for(const std::string& tree) {
  const std::string boot = read_line("/proc/sys/kernel/random/boot_id");
  return boot.empty() ? "" : tree + " " + boot;
}

void require_own(const std::string& path, const struct stat& status) {
  if (S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
      (status.st_mode & (S_IRWXG | S_IRWXO)) == 0)
    return;
  const bool is_others = status.st_uid != ::geteuid();
  throw Refused(path + (is_others ? " belongs to " + name_of_user(status.st_uid) + " and" : "") +
                    " is not a folder that dtool made for " + name_of_user(::geteuid()),
                is_others ? "that user's dtool was sending code there: let it end, or give another "
                            "--code_path"
                          : "delete it or have it deleted");
}

std::string stamp_of(const struct stat& file, const std::string& name) {
  std::string text;
  text.reserve(80 + name.size());
  text += S_ISLNK(file.st_mode) ? "l " : "f ";
  add_number(text, file.st_mode & 07777U, 8);
  add_number(text, file.st_ino);
  add_number(text, static_cast<std::uint64_t>(file.st_size));
  add_time(text, file.st_ctim);
  return text.append("./").append(name).append("\n");
}

std::uint64_t size_in(std::string_view stamp) {
  return parse_number<std::uint64_t>(field_of(stamp, 3)).value_or(0);
}

mode_t mode_in(std::string_view stamp) {
  const std::string_view digits = field_of(stamp, 1);
  mode_t mode = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), mode, 8);
  return mode;
}

std::string facts_of(const struct stat& file, const std::string& name, const std::string& target) {
  std::string text = "./" + name + " ";
  add_number(text, static_cast<std::uint64_t>(file.st_size));
  add_time(text, file.st_mtim);
  add_number(text, file.st_mode & kPermissions, 8);
  return text.append(target).append("\n");
}

std::string identity_of(const struct stat& file) {
  std::string text;
  add_number(text, file.st_ino);
  add_number(text, static_cast<std::uint64_t>(file.st_size));
  add_time(text, file.st_ctim);
  return text;
}

FileNames names_without(const FileNames& names, const FileNames& others) {
  FileNames left;
  std::ranges::set_difference(names, others, std::back_inserter(left));
  return left;
}

FileNames names_of_both(const FileNames& names, const FileNames& others) {
  FileNames both;
  std::ranges::set_union(names, others, std::back_inserter(both));
  return both;
}

FileNames split_names(std::string_view text) {
  FileNames names;
  for (std::size_t end = text.find('\0'); end != text.npos; end = text.find('\0')) {
    names.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return names;
}

std::string join_names(const FileNames& names) {
  std::string text;
  for (const std::string& name : names) text.append(name).push_back('\0');
  return text;
}

TreeFolder::TreeFolder(const std::string& path)
    : path_(made_folder(path)), inside_(path_), trees_(expand_home("~/.dtool/trees")) {
  refuse_strangers_folder(path);
  choose_key();
}

/// Homes are often shared between hosts where the folder is not: then each host has files of its
/// own.
void TreeFolder::choose_key() {
  key_ = trees_ + "/" + key_of(path_);
  if (exists(trees_) && status_of(path_).st_dev != status_of(trees_).st_dev)
    key_ += "%%" + read_line("/proc/sys/kernel/hostname");
}

bool TreeFolder::has(const std::string& tree) {
  return newest() == tree && read_line(path_of(".whole")) == tree && find_whole() == tree;
}

bool TreeFolder::is_at(const TreeRoot& root) {
  const struct stat status = status_of(path_);
  if (status.st_ino != root.inode) return false;
  if (!root.mark.empty() && !Mark(path_, root.mark, -1).holder()) return false;
  if (!root.boot.empty() && read_line("/proc/sys/kernel/random/boot_id") == root.boot)
    return status.st_dev == root.device;
  // Local file systems of two machines may be copies of one image.
  constexpr std::array<std::uint64_t, 9> kLocal = {0xef53,     0x58465342, 0x9123683e,
                                                   0x1021994,  0x794c7630, 0x2fc12fc1,
                                                   0xf2f52010, 0x52654973, 0x858458f6};
  if (std::ranges::find(kLocal, root.file_system) != kLocal.end()) return false;
  const auto first = inside_.look(root.first);
  return first && identity_of(*first) == root.first_identity;
}

void TreeFolder::take_lock(Use use) {
  const std::string hint = "name another folder, or let the user there write into this one";
  if (use == Use::write && ::faccessat(AT_FDCWD, path_.c_str(), W_OK, AT_EACCESS) != 0)
    throw Refused("cannot write into " + path_, hint);
  if (!exists(trees_)) {
    if (!make_folders(trees_)) throw Refused(with_reason("cannot make the folder " + trees_));
    choose_key();
  }
  lock_ = lock_file(lock_path(), kForTreeLock);
  if (lock_.is_open()) return;
  if (errno == EWOULDBLOCK)
    throw Refused("another dtool is sending its code to " + path_, "try again when it has");
  throw Refused(with_reason("cannot lock files in " + trees_),
                "dtool check names what the host lacks");
}

void TreeFolder::set_newest(const std::string& tree) {
  if (newest() != tree && !write_in_place(lock_path(), tree + "\n"))
    throw Refused("cannot write into " + trees_ + ": " + guess_lack_of_room(trees_));
}

bool TreeFolder::is_untouched() {
  const std::string known = read_file(path_of(".stamps"), kLargestList).value_or("");
  std::string_view rest = known;
  stamps_.clear();
  stamps_.reserve(manifest_.size());
  for (const std::string& name : manifest_) {
    const auto file = inside_.look_at_file(name);
    stamps_.push_back(file ? stamp_of(*file, name) : "");
    if (!rest.starts_with(stamps_.back())) return false;
    rest.remove_prefix(stamps_.back().size());
  }
  return rest.empty() && !known.empty();
}

std::string TreeFolder::find_whole() {
  read_manifest();
  const std::string whole = read_line(path_of(".whole"));
  whole_ = !whole.empty() && is_untouched() ? whole : "";
  return whole_;
}

FileNames TreeFolder::find_edited() {
  FileNames edited;
  if (read_line(path_of(".whole")).empty()) return edited;
  const std::string known = read_file(path_of(".stamps"), kLargestList).value_or("");
  std::string_view rest = known;
  for (const std::string& name : manifest_) {
    const auto file = inside_.look_at_file(name);
    const std::size_t length = length_of_stamp(rest, name);
    if (file && rest.substr(0, length) != stamp_of(*file, name)) edited.push_back(name);
    rest.remove_prefix(length);
  }
  return edited;
}

bool TreeFolder::is_empty() {
  const auto is_left_over = [](const std::string& name) { return name.starts_with(".~dtool~"); };
  return manifest_.empty() && std::ranges::all_of(inside_.list(), is_left_over);
}

void TreeFolder::read_manifest() {
  manifest_ = split_names(read_file(path_of(".manifest"), kLargestList).value_or(""));
  std::ranges::sort(manifest_);
  manifest_.erase(std::unique(manifest_.begin(), manifest_.end()), manifest_.end());
}

void TreeFolder::write_manifest(FileNames names) {
  write_file(path_of(".manifest"), join_names(names));
  manifest_ = std::move(names);
}

void TreeFolder::end_change(const std::string& tree, FileNames names, const FileNames& stamps) {
  const std::unordered_set<std::string_view> known(stamps_.begin(), stamps_.end());
  FileNames changed = names_without(manifest_, names);  // gone
  for (std::size_t i = 0; i < names.size() && i < stamps.size(); ++i)
    if (!known.contains(stamps[i])) changed.push_back(names[i]);
  inside_.flush(changed);
  if (manifest_ != names) write_manifest(std::move(names));
  std::string text;
  for (const std::string& stamp : stamps) text += stamp;
  if (write_in_place(path_of(".stamps"), text)) write_in_place(path_of(".whole"), tree + "\n");
  stamps_ = stamps;
  whole_ = tree;
}

std::string new_leftover() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::string(kLeftover) + std::to_string(::getpid()) + "." + std::to_string(now.tv_nsec);
}

void TreeFolder::remove_leftovers() {
  for (const std::string& name : inside_.list()) {
    if (name.starts_with(kLeftover) && name.size() > kLeftover.size() &&
        name[kLeftover.size()] >= '0' && name[kLeftover.size()] <= '9')
      inside_.remove_folder(name);
  }
}

void TreeFolder::remove_marks() {
  for (const std::string& name : inside_.list())
    if (name.starts_with(kMark)) inside_.remove_folder(name);
}

Mark::Mark(const std::string& folder, const std::string& name, std::int64_t host)
    : path_(folder + "/" + std::string(kMark) + "." + name), host_(host), is_used_(!name.empty()) {
  if (name.find('/') != name.npos) throw BadMessage("a mark has no such name");
}

std::optional<std::int64_t> Mark::holder() const {
  if (!is_used_ || !exists(path_)) return std::nullopt;
  std::string said = read_line(path_);
  // One that is being made is empty for a moment.
  for (int tries = 20; said.empty() && exists(path_) && tries > 0; --tries) {
    pause(std::chrono::milliseconds(50));
    said = read_line(path_);
  }
  const auto holder = parse_number<std::int64_t>(said);
  return holder == host_ ? std::nullopt : holder;
}

std::optional<std::int64_t> Mark::take() const {
  // Again where the one that was there has gone meanwhile.
  for (int tries = 20; is_used_ && tries > 0; --tries) {
    const Descriptor mark(
        ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (mark.is_open()) {
      const std::string text = std::to_string(host_) + "\n";
      // One that stays empty would be waited for.
      if (::write(mark.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        ::unlink(path_.c_str());
      ::fchmod(mark.get(), 0644);  // hosts that are reached as other users read it, too
      break;
    }
    if (errno != EEXIST) break;
    if (const auto other = holder()) return other;
    if (exists(path_)) break;  // its own
  }
  return std::nullopt;
}

void Mark::let_go() const {
  if (is_used_ && parse_number<std::int64_t>(read_line(path_)) == host_) ::unlink(path_.c_str());
}

}  // namespace dtool::host
