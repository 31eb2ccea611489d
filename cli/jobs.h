// Jobs of one run on their hosts: started together, followed together, ended together. Shared by
// run, config and kill.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "killfiles/killfile.h"
#include "ssh/job/screen_job.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// A name for a run that no other has: `<name>_20261121-034512-3fa91c`, name made of harmless
/// characters.
std::string make_run_id(const std::string& name);

/// Now, in UTC, as a killfile has it.
std::string utc_now();

/// `user@host` of this launcher.
std::string launcher_name();

using killfiles::run_folder;
using killfiles::state_folder;

/// When a job is started: what reaches out to others' jobs comes after them.
enum class Turn { first, last };

/// A job, and the place of its host among the remote's.
struct HostJob {
  std::size_t host = 0;
  ssh::ScreenJob job;
  Turn turn = Turn::first;
};

/// Starts them; the results carry why a job did not start. Those whose turn is the last are not
/// started where another one was not, and have no result then.
std::vector<ssh::HostResult> start_jobs(Console& console, ssh::Remote& remote,
                                        const std::vector<HostJob>& jobs, ssh::OldLog old_log);

/// A host as it was recorded, and as it answered.
struct FoundHost {
  killfiles::HostIdentity recorded;
  killfiles::HostIdentity found;
  std::vector<std::string> unseen;  ///< what may be the run's work and cannot be told to be
};

/// What became of the machines of a run that were ended.
struct KillReport {
  std::vector<ssh::HostResult>
      results;  ///< a host where something is left has a failure's exit code and error,
                ///< and so has one whose answer proves nothing: Failure::unproven
  std::vector<FoundHost> hosts;  ///< by result
  int ended = 0;                 ///< processes, over all hosts
  int forced = 0;                ///< of them, those that needed KILL
  std::string cancelled;         ///< what a scheduler had of it: `job 12`; or empty
  bool none_left = false;        ///< every host looked again and found none
};

/// Whether a start of the run may still be on its way to a host where nothing can be written, so
/// that kill's mark is not there to stop it.
enum class Starts { may_come, have_answered };

/// Ends all processes of the run on the remote's hosts, in one step a host, however many of its
/// machines are reached through it. Where the run's folder is gone, the killfile `file` says
/// whether another `dtool kill` had proven before that none is left; empty: nobody is asked.
KillReport end_run(Console& console, ssh::Remote& remote, const killfiles::Killfile& killfile,
                   std::chrono::milliseconds grace, const std::filesystem::path& file = {},
                   Starts starts = Starts::may_come);

/// Whether a kill_command's answer proves that nothing is left on its host.
bool is_proven_ended(const ssh::HostResult& result);

/// Takes the run's folders away from the hosts. Logs and outputs stand elsewhere and stay.
void remove_state(ssh::Remote& remote, const killfiles::Killfile& killfile);

/// Takes away the folders of a run of which nothing is left, then its killfile. That nothing is
/// left is written there first: whoever ends the run once more, at the same time or after this was
/// cut off, finds the folders gone and reads why.
void forget_run(ssh::Remote& remote, killfiles::Killfile killfile,
                const std::filesystem::path& file);

/// Takes away the run's folder, still empty, from hosts that were looked at but where nothing was
/// started. After an interrupt no host is asked: a later run's check takes such folders away when
/// they are a day old.
void discard_run_folders(ssh::Remote& remote, const std::string& run_id);

/// The killfile that `record` has put on the disk. Where that fails nothing may be started: takes
/// the run's folders back from the hosts, says so, and throws what `record` threw.
killfiles::Killfile record_or_discard(Console& console, ssh::Remote& remote,
                                      const std::string& run_id,
                                      const std::function<killfiles::Killfile()>& record);

}  // namespace dtool::cli
