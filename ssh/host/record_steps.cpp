// SPDX-License-Identifier: MIT
#include "ssh/host/record_steps.h"

namespace dtool::host {

void write_whole(Disk& disk, const std::string& path, std::string_view content) {
  const std::string temporary = path + ".new";
  disk.make(temporary);
  disk.write(temporary, content);
  disk.flush(temporary);
  disk.rename(temporary, path);
}

void write_reserved(Disk& disk, const std::string& path, std::string_view content) {
  const std::string reserved = path + ".new";
  disk.open(reserved);
  disk.write(reserved, content);
  disk.flush(reserved);
  disk.rename(reserved, path);
}

}  // namespace dtool::host
