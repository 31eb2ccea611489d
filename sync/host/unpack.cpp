// SPDX-License-Identifier: MIT
#include "sync/host/unpack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "sync/host/copy_file.h"
#include "sync/host/other_kinds.h"
#include "sync/host/package_reader.h"
#include "sync/relay/host/passed_on.h"

namespace dtool::host {
namespace {

/// The files of one package, in a folder of their own inside the one that they are for.
class Unpacking {
 public:
  explicit Unpacking(TreeFolder& folder);
  ~Unpacking() { folder_.inside().remove_folder(aside_); }
  Unpacking(const Unpacking&) = delete;
  Unpacking& operator=(const Unpacking&) = delete;

  std::string path_aside() const { return folder_.path() + "/" + aside_; }
  void receive(PackageReader reader);
  /// The files there that are not from dtool and would be overwritten.
  FileNames find_foreign();
  /// Throws Refused if something of another kind is in the way.
  void refuse_other_kinds() { host::refuse_other_kinds(folder_, names_); }
  /// Returns how many files went.
  std::size_t put_in_place(const std::string& tree);

 private:
  void begin(PackageEntry entry);
  void write(std::string_view bytes);
  bool is_like(const std::string& name);
  std::string stamp_of_coming(const PackageEntry& entry);

  TreeFolder& folder_;
  std::string aside_;
  std::optional<Inside> files_;
  Descriptor file_;         ///< that is being written
  std::uint64_t left_ = 0;  ///< bytes of it
  FileNames removed_;
  std::vector<PackageEntry> folders_;
  std::vector<PackageEntry> coming_;  ///< without their contents; as the file system kept them
  FileNames names_;                   ///< of these
};

/// Its name is no other's, whichever host made it.
std::string new_name() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return ".~dtool~." + std::to_string(::getpid()) + "." + std::to_string(now.tv_nsec);
}

/// What the file system has made of a time and a mode. Some file systems keep whole seconds only,
/// and each has a range of years.
void note_kept(PackageEntry& entry, const struct stat& file) {
  entry.mode = file.st_mode & 07777U;
  entry.seconds = file.st_mtim.tv_sec;
  entry.nanoseconds = file.st_mtim.tv_nsec;
}

Unpacking::Unpacking(TreeFolder& folder) : folder_(folder), aside_(new_name()) {
  const std::string path = path_aside();
  if (::mkdir(path.c_str(), S_IRWXU) != 0 || ::mkdir((path + "/tree").c_str(), S_IRWXU) != 0)
    throw std::runtime_error(with_reason("no folder can be made in " + folder.path()));
  files_.emplace(path + "/tree");
}

void Unpacking::write(std::string_view bytes) {
  if (bytes.size() > left_) throw BadMessage("a file is longer than it was said to be");
  try {
    write_with_holes(file_.get(), bytes);
    if (bytes.size() == left_) end_hole(file_.get());
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(folder_.path() + "/" + coming_.back().name + ": " + error.what());
  }
  left_ -= bytes.size();
  if (left_ != 0) return;
  PackageEntry& entry = coming_.back();
  const timespec times[] = {{0, UTIME_OMIT}, {entry.seconds, entry.nanoseconds}};
  struct stat file;
  if (::fchmod(file_.get(), entry.mode & kPermissions) != 0 ||
      ::futimens(file_.get(), times) != 0 || ::fstat(file_.get(), &file) != 0)
    throw std::runtime_error(with_reason(entry.name));
  note_kept(entry, file);
  file_ = Descriptor();
}

void Unpacking::begin(PackageEntry entry) {
  const bool is_folder = entry.name.ends_with('/');
  if (is_folder) entry.name.pop_back();
  if (!is_folder && !names_.empty() && entry.name <= names_.back())
    throw BadMessage("its files are not sorted");
  if (entry.target.find('\0') != entry.target.npos)
    throw BadMessage("no link can lead where " + entry.name + " does");
  const bool has_content = !is_folder && entry.target.empty();
  const std::string content = std::exchange(entry.content.text, {});
  if (!is_folder) names_.push_back(entry.name);
  std::vector<PackageEntry>& entries = is_folder ? folders_ : coming_;
  entries.push_back(std::move(entry));
  PackageEntry& last = entries.back();
  const Inside::Spot spot = files_->find(last.name, Inside::Way::made);
  if (spot.folder == -1) throw BadMessage("no file can have the name " + last.name);
  if (is_folder) {
    ::mkdirat(spot.folder, spot.name, S_IRWXU);
    return;
  }
  if (!has_content) {
    const timespec times[] = {{0, UTIME_OMIT}, {last.seconds, last.nanoseconds}};
    struct stat link;
    if (::symlinkat(last.target.c_str(), spot.folder, spot.name) != 0 ||
        ::utimensat(spot.folder, spot.name, times, AT_SYMLINK_NOFOLLOW) != 0 ||
        ::fstatat(spot.folder, spot.name, &link, AT_SYMLINK_NOFOLLOW) != 0)
      throw std::runtime_error(with_reason(last.name));
    note_kept(last, link);
    return;
  }
  constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  file_ = Descriptor(::openat(spot.folder, spot.name, kNew, S_IRUSR | S_IWUSR));
  if (!file_.is_open()) throw std::runtime_error(with_reason(last.name));
  left_ = last.size;
  write(content);
}

void Unpacking::receive(PackageReader reader) {
  while (const auto frame = reader.next()) {
    if (left_ != 0 && frame->kind != Kind::package_bytes)
      throw BadMessage("a file is shorter than it was said to be");
    if (frame->kind == Kind::names) {
      std::ranges::move(open<Names>(*frame).names, std::back_inserter(removed_));
    } else if (frame->kind == Kind::package_bytes && file_.is_open()) {
      write(frame->body);
    } else {
      begin(open<PackageEntry>(*frame));
    }
  }
  if (left_ != 0) throw BadMessage("a file is shorter than it was said to be");
  std::ranges::sort(removed_);
}

/// Whether a file here has what the one that comes has.
bool Unpacking::is_like(const std::string& name) {
  Inside& here = folder_.inside();
  const auto one = here.look(name);
  const auto other = files_->look(name);
  if (!one || !other || (one->st_mode & S_IFMT) != (other->st_mode & S_IFMT)) return false;
  if (S_ISLNK(one->st_mode)) return here.target_of(name) == files_->target_of(name);
  if (!S_ISREG(one->st_mode) || one->st_size != other->st_size) return false;
  const Descriptor file = here.open_file(name);
  const Descriptor coming = files_->open_file(name);
  return file.is_open() && coming.is_open() && have_same_bytes(file, coming);
}

FileNames Unpacking::find_foreign() {
  FileNames foreign;
  for (const std::string& name : names_without(names_, folder_.manifest()))
    if (folder_.inside().look_at_file(name) && !is_like(name)) foreign.push_back(name);
  return foreign;
}

/// The record of a file in its place, if the file is as it was aside.
std::string Unpacking::stamp_of_coming(const PackageEntry& entry) {
  Inside& here = folder_.inside();
  const auto file = here.look_at_file(entry.name);
  const bool is_link = !entry.target.empty();
  const bool is_same =
      file && file->st_mtim.tv_sec == entry.seconds && file->st_mtim.tv_nsec == entry.nanoseconds &&
      (is_link ? S_ISLNK(file->st_mode) && here.target_of(entry.name) == entry.target
               : file->st_mode == (S_IFREG | entry.mode) &&
                     static_cast<std::uint64_t>(file->st_size) == entry.size);
  if (!is_same) throw std::runtime_error("the tree is not what it should be");
  return stamp_of(*file, entry.name);
}

std::size_t Unpacking::put_in_place(const std::string& tree) {
  Inside& here = folder_.inside();
  const FileNames before = folder_.manifest();
  const FileNames old_stamps = folder_.stamps();
  const FileNames stay = names_without(before, removed_);
  const FileNames after = names_of_both(stay, names_);
  // The coming files are in the manifest before they exist, so that all leftovers are known as
  // dtool's.
  FileNames added = names_without(names_, before);
  std::erase_if(added, [&](const std::string& name) {
    return !before.empty() && here.look(name).has_value();
  });
  folder_.begin_change();
  if (!added.empty()) folder_.write_manifest(names_of_both(before, added));
  // If there was nothing before, whole folders are moved.
  files_->forget();
  for (const std::string& name : before.empty() ? files_->list() : names_) here.take(*files_, name);
  const std::size_t removed = here.remove(names_without(before, stay));
  if (after != folder_.manifest()) folder_.write_manifest(after);
  for (auto each = folders_.rbegin(); each != folders_.rend(); ++each)
    here.set_mode(each->name, each->mode & kPermissions);
  folder_.remove_marks();

  FileNames stamps;
  stamps.reserve(after.size());
  auto old = before.begin();
  auto coming = coming_.begin();
  for (const std::string& name : after) {
    if (coming != coming_.end() && coming->name == name) {
      stamps.push_back(stamp_of_coming(*coming++));
      continue;
    }
    old = std::lower_bound(old, before.end(), name);
    stamps.push_back(old_stamps.at(static_cast<std::size_t>(old - before.begin())));
  }
  folder_.end_change(tree, stamps);
  return removed;
}

}  // namespace

Unpacked unpack(TreeFolder& folder, const TreeRequest& request, FrameInput& input,
                const TellNews& tell, std::optional<PackageServer>& server) {
  constexpr std::size_t kFirst = 10;
  Unpacked unpacked;
  try {
    folder.remove_leftovers();
    Unpacking unpacking(folder);
    const std::chrono::milliseconds patience(request.patience_ms);
    const auto compressed = request.is_compressed ? Compressed::yes : Compressed::no;
    std::optional<PassedOn> passed_on;
    if (request.relay) {
      passed_on.emplace(unpacking.path_aside() + "/package", *request.relay,
                        PackageServer::of(*request.relay, server), tell);
      passed_on->get(input, patience);
      unpacking.receive(
          PackageReader(passed_on->content(), patience, compressed, request.relay->key.text));
    } else {
      unpacking.receive(PackageReader(input, patience, compressed));
    }
    unpacking.refuse_other_kinds();
    if (request.refuses_foreign) unpacked.first = unpacking.find_foreign();
    if (!unpacked.first.empty()) {
      unpacked.foreign = static_cast<std::int64_t>(unpacked.first.size());
      unpacked.first.resize(std::min(unpacked.first.size(), kFirst));
      unpacked.folder = with_tilde(folder.path());
      folder.remove_marks();
      return unpacked;
    }
    unpacked.removed = static_cast<std::int64_t>(unpacking.put_in_place(request.tree));
    unpacked.is_whole = true;
  } catch (const NotGiven& error) {
    server->cut(request.relay->number);
    unpacked.missed = error.what();
    unpacked.is_spoilt = error.is_spoilt;
  } catch (const Refused&) {
    folder.remove_marks();
    throw;
  } catch (const std::exception& error) {
    unpacked.broken = error.what();
    input.leave();
  }
  return unpacked;
}

}  // namespace dtool::host
