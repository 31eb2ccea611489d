// SPDX-License-Identifier: MIT
#include "sync/host/look_at_source.h"

#include <sys/stat.h>

#include <algorithm>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/identity.h"
#include "ssh/host/sha256.h"
#include "sync/host/inside.h"
#include "sync/host/remove_tree.h"
#include "sync/host/tree_folder.h"

namespace dtool::host {

LookReply look_at_source(const LookRequest& request) {
  if (!is_program("rsync"))
    throw Refused("rsync is not installed", "its package is called rsync on every system");
  if (!request.run_id.empty()) keep_written(request.run_id);
  const std::string path = expand_home(request.folder);
  if (!exists(path + "/"))
    throw Refused("there is no folder " + path,
                  "the run has not begun to write there, or it was moved or deleted since");
  Inside folder(path);
  if (!request.file.empty() && !folder.look_at_file(request.file))
    throw Refused("there is no file " + path + "/" + request.file);
  FileNames names = folder.list();
  std::ranges::sort(names);
  struct stat itself {};
  ::stat(path.c_str(), &itself);
  Sha256 sha;
  sha.add(std::to_string(itself.st_ino) + "\n");
  for (const std::string& name : names) {
    const auto file = folder.look(name);
    if (file) sha.add(std::to_string(file->st_ino) + " " + name + "\n");
  }
  return {to_hex(sha.finish()), identify_host()};
}

}  // namespace dtool::host
