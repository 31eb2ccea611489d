#include "cli/recorded.h"

#include "cli/action.h"
#include "ssh/client_config.h"

namespace dtool::cli {

std::filesystem::path killfile_folder() {
  return ssh::home_folder() / ".dtool" / "killfiles";
}

killfiles::Killfile recorded_run(const std::string& id) {
  if (!id.empty()) {
    const killfiles::Listed found = killfiles::find(killfile_folder(), id);
    if (!found.killfile)
      throw UsageError(found.error, "dtool kill --screen_ids_file takes a mended copy");
    return *found.killfile;
  }
  for (const killfiles::Listed& each : killfiles::list(killfile_folder())) {
    if (each.killfile) return *each.killfile;
  }
  throw UsageError("no run is recorded in " + killfile_folder().string(), "dtool run starts one");
}

}  // namespace dtool::cli
