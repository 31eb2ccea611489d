// SPDX-License-Identifier: MIT
#include "ssh/program/kept_masters.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "ssh/kept/kept_folder.h"
#include "ssh/machine/encodings.h"
#include "ssh/program/master.h"

namespace dtool::ssh {
namespace {

constexpr int kConnectionsAHost = 8;  ///< connections to one host at once

/// Their names in the folder; another number keeps versions apart that would not understand each
/// other.
std::string master_prefix() {
  return "master1-" + socket_prefix();
}

std::string lock_name(const std::string& name) {
  return name + ".host";
}

/// The file beside a master's socket. Commands that use the connection hold its lock; its content
/// says where the connection leads.
OwnedFd lock_slot(const KeptFolder& folder, const std::string& name) {
  const std::string lock = lock_name(name);
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  for (int tries = 0; tries < 10; ++tries) {
    OwnedFd file(::openat(folder.fd(), lock.c_str(), kFlags, 0600));
    if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return {};
    // Another process may have removed it in between.
    struct stat ours {};
    struct stat named {};
    const bool is_it = ::fstat(file.get(), &ours) == 0 &&
                       ::fstatat(folder.fd(), lock.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
                       ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
    if (is_it) return file;
  }
  return {};
}

/// Files beside sockets that are gone: their masters have ended by themselves.
void remove_left_files(const KeptFolder& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path(), ignored)) {
    const std::string file = entry.path().filename().string();
    const std::size_t end = file.rfind(".host");
    const bool is_ours = file.starts_with("master1-") && end != file.npos;
    if (!is_ours || folder.inode(file.substr(0, end)) != 0) continue;
    const OwnedFd lock = lock_slot(folder, file.substr(0, end));
    if (lock) folder.remove(file);
  }
}

}  // namespace

OwnedFd take_master_slot(const KeptFolder& folder, const std::string& key, std::string& name) {
  Sha256 digest;
  digest.add(key);
  const std::string base = master_prefix() + digest.hex().substr(0, 16);
  for (int slot = 0; slot < kConnectionsAHost; ++slot) {
    name = fmt::format("{}-{}", base, slot);
    OwnedFd lock = lock_slot(folder, name);
    if (lock) return lock;
  }
  return {};
}

void describe_master(const OwnedFd& lock, const Host& host, const ProgramSettings& settings) {
  const std::string text = fmt::format("{}\n{}@{}:{}\n", to_string(host), settings.user,
                                       settings.address, settings.port);
  if (::ftruncate(lock.get(), 0) != 0) return;
  // If it cannot be written, `dtool disconnect` still ends the master, without a name.
  if (::pwrite(lock.get(), text.data(), text.size(), 0) < 0) return;
}

void remove_master_files(const KeptFolder& folder, const std::string& name) {
  folder.remove(name);
  folder.remove(lock_name(name));
}

std::vector<KeptMaster> end_kept_masters(const KeptFolder& folder,
                                         const std::optional<std::vector<std::string>>& targets) {
  std::vector<KeptMaster> all;
  for (const std::string& name : folder.names()) {
    if (!name.starts_with(master_prefix())) continue;
    std::ifstream file(folder.path() / lock_name(name));
    KeptMaster master;
    std::getline(file, master.host) && std::getline(file, master.target);
    if (targets && std::ranges::find(*targets, master.target) == targets->end()) continue;
    const OwnedFd lock = lock_slot(folder, name);
    master.is_in_use = !lock;
    const std::string socket = fmt::format("/proc/self/fd/{}/{}", folder.fd(), name);
    const OwnedFd conversation = tell_to_end(socket, MasterEnds::after_commands);
    if (conversation && lock) {
      pollfd end{conversation.get(), POLLIN | POLLHUP, 0};
      constexpr int kLongestMs = 5000;
      if (::poll(&end, 1, kLongestMs) == 0) master.silent = pid_behind(conversation.get());
    }
    if (lock && master.silent == 0) {
      remove_master_files(folder, name);
    }
    if (conversation) all.push_back(master);
  }
  if (!targets) remove_left_files(folder);
  return all;
}

}  // namespace dtool::ssh
