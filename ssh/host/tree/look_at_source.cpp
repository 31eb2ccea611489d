// SPDX-License-Identifier: MIT
#include "ssh/host/tree/look_at_source.h"

#include <sys/stat.h>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/identity.h"
#include "ssh/host/tree/inside.h"
#include "ssh/host/tree/mark.h"
#include "ssh/host/tree/remove_tree.h"
#include "ssh/host/tree/tree_folder.h"

namespace dtool::host {

LookReply look_at_source(const LookRequest& request) {
  const std::string path = expand_home(request.folder);
  const Mark mark(path, request.mark, request.host);
  if (request.lets_go) {
    mark.let_go();
    return {};
  }
  if (!is_program("rsync"))
    throw Refused("rsync is not installed", "its package is called rsync on every system");
  if (!request.run_id.empty()) keep_written(request.run_id);
  if (!exists(path + "/"))
    throw Refused("there is no folder " + path,
                  "the run has not begun to write there, or it was moved or deleted since");
  Inside folder(path);
  if (!request.file.empty() && !folder.look_at_file(request.file))
    throw Refused("there is no file " + path + "/" + request.file);
  struct stat itself {};
  ::stat(path.c_str(), &itself);
  return {itself.st_ino, identify_host(), mark.take()};
}

}  // namespace dtool::host
