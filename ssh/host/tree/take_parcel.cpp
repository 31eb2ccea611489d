// SPDX-License-Identifier: MIT
#include "ssh/host/tree/take_parcel.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "killfiles/channel/sha256.h"
#include "ssh/host/frame_input.h"
#include "ssh/host/tree/copy_folder.h"
#include "ssh/host/tree/kept_copy.h"
#include "ssh/host/tree/package_server.h"
#include "ssh/host/tree/tree_folder.h"

namespace dtool::host {
namespace {

/// The pieces of one parcel on their way to their places.
class Taking {
 public:
  /// Adds to `taken` what comes.
  Taking(CopyFolder& folder, const CopyPlace& place, Taken& taken)
      : folder_(folder), place_(place), taken_(taken) {}

  void take(PackageReader reader);

 private:
  void begin(CopyPiece piece);
  void make_link(const CopyEntry& entry);
  void put(const std::string& part, const CopyEntry& entry);
  void put_beside(const std::string& part, const CopyEntry& entry);
  void open_part();
  void open_in_place(const Inside::Spot& spot);
  void drop_file();
  void hash_what_is_there();
  void write(std::string_view bytes);
  void end_range();
  void end_file(const CopySum& sum);
  void name_whole();
  std::string path_of(const std::string& name) const { return folder_.shown() + "/" + name; }
  std::string sum_name() const { return part_ + ".sum"; }

  CopyFolder& folder_;
  const CopyPlace& place_;
  Taken& taken_;
  CopyPiece piece_;          ///< the piece that comes
  std::string part_;         ///< name of its file's part; empty: it is written in its place
  Descriptor file_;          ///< the part; closed: its file is left out
  std::uint64_t left_ = 0;   ///< bytes of the piece that are still to come
  bool awaits_sum_ = false;  ///< the last piece of a file has come, and its sum is awaited
  Sha256 sha_;
  std::vector<std::pair<std::string, CopyEntry>> whole_;  ///< parts that wait for their names
  CopiedFiles copied_;
};

/// A file of a code tree that is as large as that is a part first: if it breaks off, its beginning
/// stays.
constexpr std::uint64_t kSmall = 1'000'000;  // bytes

constexpr const char* kGoesOn = "what has come stays; the same command goes on from there";

[[noreturn]] void refuse(const std::string& path) {
  const bool is_full = errno == ENOSPC || errno == EDQUOT;
  throw Refused(with_reason(path),
                (is_full ? "free some space there (df -h, df -i); " : "") + std::string(kGoesOn));
}

/// Part of this copy may come twice.
bool is_as_listed(const CopyEntry& entry, const struct stat& there) {
  return S_ISLNK(there.st_mode) == !entry.target.empty() && !S_ISDIR(there.st_mode) &&
         has_time(entry, there) &&
         (S_ISLNK(there.st_mode) || static_cast<std::uint64_t>(there.st_size) == entry.size);
}

bool is_link_made(const Inside::Spot& spot, const CopyEntry& entry) {
  ::unlinkat(spot.folder, spot.name, 0);
  const timespec times[] = {{0, UTIME_OMIT}, time_of(entry)};
  return entry.target.find('\0') == entry.target.npos &&
         ::symlinkat(entry.target.c_str(), spot.folder, spot.name) == 0 &&
         ::utimensat(spot.folder, spot.name, times, AT_SYMLINK_NOFOLLOW) == 0;
}

void Taking::make_link(const CopyEntry& entry) {
  const std::string name = "link";
  if (!is_link_made(folder_.parts().find(name), entry)) refuse(path_of(entry.name));
  put(name, entry);
}

/// Hours may have passed since the question was answered.
void Taking::put(const std::string& part, const CopyEntry& entry) {
  const auto there = folder_.inside().look(entry.name);
  const bool is_foreign =
      there && place_.refuses_foreign && !copied_.has(*there) && !is_as_listed(entry, *there);
  if (is_foreign)
    throw Refused(path_of(entry.name) + " was put or changed there while this copy was at work",
                  "--force replaces it; to keep it, move it away");
  if (!folder_.inside().take_if_near(folder_.parts(), part, entry.name)) put_beside(part, entry);
}

/// Where another file system is mounted below the folder, the part is copied to it first: a file
/// gets its name only when it is whole.
void Taking::put_beside(const std::string& part, const CopyEntry& entry) {
  Inside& inside = folder_.inside();
  const std::string beside = entry.name.substr(0, entry.name.rfind('/') + 1) + folder_.beside();
  inside.drop(beside);
  try {
    if (entry.target.empty()) {
      copy_file(folder_.parts(), inside, part, beside);
      inside.flush({beside});
    } else if (!is_link_made(inside.find(beside), entry)) {
      throw std::runtime_error(with_reason(entry.name));
    }
    inside.take(inside, beside, entry.name);
  } catch (const std::runtime_error& error) {
    const std::string reason = error.what();
    inside.drop(beside);
    throw Refused("cannot write " + path_of(entry.name) + ", which is on another disk than " +
                      folder_.path() + ": " + reason,
                  kGoesOn);
  }
  folder_.parts().drop(part);
}

/// A copy's own bytes are hashed as they come. What an earlier copy left is read again.
void Taking::hash_what_is_there() {
  sha_ = {};
  if (piece_.offset == 0) return;
  const Descriptor state = folder_.parts().open_file(sum_name());
  std::string text;
  while (state.is_open()) {
    const auto bytes = read_some(state.get());
    if (!bytes) break;
    text += *bytes;
  }
  const std::string head = place_.copy + "\n" + std::to_string(piece_.offset) + "\n";
  if (text.starts_with(head) && sha_.go_on_from(std::string_view(text).substr(head.size()))) return;
  ::lseek(file_.get(), 0, SEEK_SET);
  for (std::uint64_t left = piece_.offset; left > 0;) {
    const auto bytes = read_some(file_.get());
    if (!bytes) throw Refused("cannot read what came before of " + path_of(piece_.entry.name));
    const std::string_view some = std::string_view(*bytes).substr(0, left);
    sha_.add(some);
    left -= some.size();
    folder_.give_way();
  }
}

void Taking::open_part() {
  const Inside::Spot spot = folder_.parts().find(part_);
  constexpr int kHow = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  file_ = Descriptor(::openat(spot.folder, spot.name, kHow, S_IRUSR | S_IWUSR));
  struct stat part {};
  if (!file_.is_open() || ::fstat(file_.get(), &part) != 0) refuse(path_of(piece_.entry.name));
  if (!S_ISREG(part.st_mode) || static_cast<std::uint64_t>(part.st_size) < piece_.offset) {
    taken_.spoilt.push_back(piece_.entry.name);  // its beginning is gone: all of it must come again
    file_ = Descriptor();
    return;
  }
  hash_what_is_there();
  // What lies behind stays until it is written over. A part that is cut while another host writes
  // at its end would get a hole, which neither the size nor the SHA-256 of what came shows.
  const auto at = static_cast<off_t>(piece_.offset);
  if (::lseek(file_.get(), at, SEEK_SET) != at) refuse(path_of(piece_.entry.name));
}

/// A code tree's folder is seen by nobody before all of it is there, and a file in it counts once
/// it has the time that is listed.
void Taking::open_in_place(const Inside::Spot& spot) {
  ::unlinkat(spot.folder, spot.name, 0);
  constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  file_ = Descriptor(::openat(spot.folder, spot.name, kNew, S_IRUSR | S_IWUSR));
  if (!file_.is_open()) refuse(path_of(piece_.entry.name));
  part_.clear();
  sha_ = {};
}

/// Deletes what has come of the file.
void Taking::drop_file() {
  if (part_.empty()) return folder_.inside().drop(piece_.entry.name);
  folder_.parts().drop(part_);
}

void Taking::begin(CopyPiece piece) {
  piece_ = std::move(piece);
  const CopyEntry& entry = piece_.entry;
  const bool is_folder = entry.name.ends_with('/');
  const std::string name = is_folder ? entry.name.substr(0, entry.name.size() - 1) : entry.name;
  const Inside::Spot spot = folder_.inside().find(name, Inside::Way::made);
  if (spot.folder == -1) throw BadMessage("no file can be copied to " + path_of(name));
  if (is_folder || !entry.target.empty()) taken_.entries.push_back(entry);
  if (is_folder) {
    const std::string inner = name + "/file";  // the folder is made on the way to it
    if (folder_.inside().find(inner, Inside::Way::made).folder == -1) refuse(path_of(name));
    return;
  }
  if (!entry.target.empty()) return make_link(entry);
  if (piece_.offset > entry.size || piece_.bytes > entry.size - piece_.offset)
    throw BadMessage("a piece is not within its file");
  folder_.give_way();
  const bool is_all = piece_.offset == 0 && piece_.bytes == entry.size;
  if (folder_.is_for_tree() && is_all && entry.size < kSmall) {
    open_in_place(spot);
  } else {
    part_ = part_name(entry);
    open_part();
  }
  left_ = piece_.bytes;
  awaits_sum_ = piece_.offset + piece_.bytes == entry.size;
  if (left_ == 0) end_range();
}

void Taking::write(std::string_view bytes) {
  if (bytes.size() > left_) throw BadMessage("a piece is longer than it was said to be");
  left_ -= bytes.size();
  if (file_.is_open()) {
    sha_.add(bytes);
    try {
      write_with_holes(file_.get(), bytes);
      if (left_ == 0) end_hole(file_.get());
    } catch (const std::runtime_error&) {
      refuse(path_of(piece_.entry.name));
    }
  }
  if (left_ == 0) end_range();
}

/// Between a file's parcels the state of its SHA-256 lies beside it.
void Taking::end_range() {
  if (awaits_sum_ || !file_.is_open()) return;
  const std::string state =
      place_.copy + "\n" + std::to_string(piece_.offset + piece_.bytes) + "\n" + sha_.state();
  const std::string name = sum_name();
  const Inside::Spot spot = folder_.parts().find(name);
  constexpr int kHow = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
  const Descriptor file(::openat(spot.folder, spot.name, kHow, S_IRUSR | S_IWUSR));
  if (!file.is_open()) refuse(path_of(piece_.entry.name));
  write_all(file.get(), state);
  file_ = Descriptor();
}

void Taking::end_file(const CopySum& sum) {
  if (!std::exchange(awaits_sum_, false)) throw BadMessage("a checksum belongs to no file");
  const CopyEntry& entry = piece_.entry;
  if (!file_.is_open()) return;
  if (!part_.empty()) folder_.parts().drop(sum_name());
  folder_.give_way();
  struct stat part {};
  const bool is_whole = ::fstat(file_.get(), &part) == 0 && part.st_nlink == 1 &&
                        static_cast<std::uint64_t>(part.st_size) == entry.size;
  if (to_hex(sha_.finish()) != sum.sha256 || !is_whole) {
    drop_file();
    taken_.spoilt.push_back(entry.name);
  } else {
    const timespec times[] = {{0, UTIME_OMIT}, time_of(entry)};
    // Some file servers say only at the end that the disk is full.
    if (::fchmod(file_.get(), entry.mode & kPermissions) != 0 ||
        ::futimens(file_.get(), times) != 0 || ::close(file_.release()) != 0) {
      const int reason = errno;
      drop_file();
      errno = reason;
      refuse(path_of(entry.name));
    }
    if (!part_.empty()) whole_.emplace_back(part_, entry);
    taken_.entries.push_back(entry);
    taken_.entries.back().sha256 = sum.sha256;
  }
  file_ = Descriptor();
}

/// A file that the power failed on must not have its name: it would count as copied. A code tree's
/// reach the disk together, when they are put in their place.
void Taking::name_whole() {
  FileNames parts;
  for (const auto& [part, entry] : whole_) parts.push_back(part);
  folder_.give_way();
  if (!folder_.is_for_tree()) folder_.parts().flush(parts);
  for (const auto& [part, entry] : whole_) put(part, entry);
}

void Taking::take(PackageReader reader) {
  while (const auto frame = reader.next()) {
    if (left_ != 0 && frame->kind != Kind::package_bytes)
      throw BadMessage("a piece is shorter than it was said to be");
    if (frame->kind == Kind::package_bytes) {
      write(frame->body);
    } else if (frame->kind == Kind::copy_sum) {
      end_file(open<CopySum>(*frame));
    } else if (frame->kind == Kind::names && folder_.is_alone()) {
      std::ranges::move(open<Names>(*frame).names, std::back_inserter(taken_.names));
    } else {
      if (awaits_sum_) throw BadMessage("a file has no checksum");
      begin(open<CopyPiece>(*frame));
    }
  }
  if (left_ != 0 || awaits_sum_) throw BadMessage("a parcel is not whole");
  name_whole();
}

}  // namespace

Taken take_package(CopyFolder& folder, PackageReader reader) {
  const CopyPlace place;
  Taken taken;
  Taking(folder, place, taken).take(std::move(reader));
  return taken;
}

ParcelReply ParcelTaker::take(const ParcelRequest& request, FrameInput& input, const Tell& tell) {
  const bool is_at_work = unpacking_.valid() &&
                          unpacking_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  const std::string place =
      request.place.folder + '\0' + request.place.copy + '\0' + std::to_string(request.place.round);
  if (!is_at_work || request.is_last || place != place_) settle();
  place_ = place;
  if (!folder_) folder_ = std::make_unique<CopyFolder>(request.place);
  ParcelReply reply;
  reply.holder = folder_->holder();
  if (reply.holder) {
    input.leave();
    folder_.reset();
    return reply;
  }
  input.set_on_wait([this, &request](std::chrono::milliseconds waited) {
    const bool is_still = waited.count() >= request.patience_ms / 10;
    folder_->give_way(is_still ? CopyFolder::To::any_launcher : CopyFolder::To::own_launcher);
  });
  reply = request.relay ? pass_on(request, input, tell) : take_from_launcher(request, input);
  input.set_on_wait({});
  if (!unpacking_.valid()) folder_.reset();
  if (request.is_last && server_) server_->finish();
  return reply;
}

ParcelReply ParcelTaker::take_from_launcher(const ParcelRequest& request, FrameInput& input) {
  if (unpacking_.valid()) {
    settle();
    folder_ = std::make_unique<CopyFolder>(request.place);
  }
  ParcelReply reply;
  reply.spoilt = std::exchange(spoilt_, {});
  Taken taken;
  Taking(*folder_, request.place, taken)
      .take(PackageReader(input, std::chrono::milliseconds(request.patience_ms),
                          request.is_compressed ? Compressed::yes : Compressed::no));
  std::ranges::move(taken.spoilt, std::back_inserter(reply.spoilt));
  return reply;
}

ParcelReply ParcelTaker::pass_on(const ParcelRequest& request, FrameInput& input,
                                 const Tell& tell) {
  const auto told = [this, &tell](const TreeNews& news) {
    folder_->give_way();
    tell(news);
  };
  ParcelReply reply;
  try {
    PackageServer& server = PackageServer::of(*request.relay, server_);
    auto parcel = std::make_unique<PassedOn>(folder_->parcel_path(), *request.relay, server, told);
    ::unlink(folder_->parcel_path().c_str());  // the next one has the same name
    parcel->get(input, std::chrono::milliseconds(request.patience_ms));
    if (unpacking_.valid()) {
      settle();
      folder_ = std::make_unique<CopyFolder>(request.place);
    }
    parcel_ = std::move(parcel);
    unpack(request, *parcel_);
    keep(request.relay->number);
  } catch (const NotGiven& error) {
    server_->cut(request.relay->number);
    reply.missed = error.what();
    reply.is_spoilt = error.is_spoilt;
  }
  reply.spoilt = std::exchange(spoilt_, {});
  return reply;
}

/// On a thread of its own. The folder's lock is held no longer than that.
void ParcelTaker::unpack(const ParcelRequest& request, PassedOn& parcel) {
  CopyFolder& folder = *folder_;
  unpacking_ = std::async(std::launch::async, [&folder, &parcel, request] {
    struct Unlocks {
      CopyFolder& folder;
      ~Unlocks() { folder.unlock(); }
    } const unlocks{folder};
    Taken taken;
    Taking(folder, request.place, taken)
        .take(PackageReader(parcel.content(), std::chrono::milliseconds(request.patience_ms),
                            request.is_compressed ? Compressed::yes : Compressed::no,
                            request.relay->key.text));
    return taken.spoilt;
  });
}

void ParcelTaker::end() {
  settle();
  if (server_) server_->finish();
}

void ParcelTaker::settle() {
  if (!unpacking_.valid()) return;
  unpacking_.wait();
  folder_.reset();
  const Names spoilt = unpacking_.get();
  spoilt_.insert(spoilt_.end(), spoilt.begin(), spoilt.end());
}

/// One more than the launcher counts on: it may have named the oldest to a host just now.
void ParcelTaker::keep(std::int64_t number) {
  constexpr std::size_t kServed = 3;
  served_.push_back(number);
  if (served_.size() <= kServed) return;
  server_->drop(served_.front());
  served_.pop_front();
}

}  // namespace dtool::host
