// SPDX-License-Identifier: MIT
#include "ssh/host/tree/stored_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>

#include "ssh/host/files.h"
#include "ssh/host/tree/inside.h"
#include "ssh/host/tree/own_tree.h"

namespace dtool::host {
void make_own_tree_of_code(TreeFolder& folder, const OwnTree& own, const std::string& tree) {
  if (!own.code.empty()) {
    ::utimensat(AT_FDCWD, folder.path().c_str(), nullptr, 0);
    folder.stand_for(own.code);
  }
  make_own_tree(folder, own, tree);
}

void remove_old_stored_trees() {
  constexpr time_t kOld = 30 * 86400;
  const std::string all = expand_home("~/.dtool/code");
  // A run's folder has just been made there.
  const time_t now = change_of(expand_home("~/.dtool/runs")).value_or(0);
  for (const std::string& name : list_folder(all)) {
    const std::string path = all + "/" + name;
    const auto is_old = [&] { return change_of(path).value_or(0) < now - kOld; };
    if (!is_old()) continue;
    TreeFolder folder(path);
    folder.take_lock();
    if (!is_old()) continue;  // used since
    Inside(all).remove_folder(name);
    // Its copy and the list of that go later, and the lock stays: another process may wait for it.
    for (const char* ending : {".manifest", ".whole", ".stamps"})
      ::unlink(folder.path_of(ending).c_str());
  }
}

}  // namespace dtool::host
