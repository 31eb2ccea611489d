// SPDX-License-Identifier: MIT
#include "ssh/host/tree/mark.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/tree/tree_folder.h"
#include "ssh/wire/message.h"
#include "ssh/wire/words.h"

namespace dtool::host {

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
      write_all(mark.get(), std::to_string(host_) + "\n");
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
