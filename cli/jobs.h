// The jobs of one run on their hosts: starts them, follows them and ends them together. run, config
// and kill use it.
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

/// A unique name for a run: `<name>_20261121-034512-3fa91c`, with harmless characters only.
std::string make_run_id(const std::string& name);

/// The current time in UTC, in a killfile's form.
std::string utc_now();

/// `user@host` of this launcher.
std::string user_and_host();

using killfiles::run_folder;
using killfiles::state_folder;

/// When a job is started: a job that reaches out to other jobs comes after them.
enum class StartOrder { first, last };

/// A job, and the index of its host in the remote.
struct HostJob {
  std::size_t host = 0;
  ssh::ScreenJob job;
  StartOrder order = StartOrder::first;
};

/// Starts the jobs; the results say why a job did not start. If a job fails, the jobs whose turn is
/// last are not started and have no result.
std::vector<ssh::HostResult> start_jobs(Console& console, ssh::Remote& remote,
                                        const std::vector<HostJob>& jobs, ssh::OldLog old_log);

/// A host as recorded, and as it answered.
struct FoundHost {
  killfiles::HostIdentity recorded;
  killfiles::HostIdentity found;
  std::vector<std::string> unseen;  ///< processes that may be the run's, without proof
};

/// The result of ending a run's machines.
struct KillReport {
  std::vector<ssh::HostResult>
      results;  ///< a host with something left has a failure's exit code and error; so has a host
                ///< whose answer proves nothing (Failure::unproven)
  std::vector<FoundHost> hosts;  ///< in the order of the results
  int ended = 0;                 ///< processes, over all hosts
  int forced = 0;                ///< how many of them needed KILL
  std::string cancelled;         ///< jobs of a scheduler that were ended: `job 12`; or empty
  bool none_left = false;        ///< every host looked again and found none
};

/// Whether a start of the run may still be on its way to a host. If nothing can be written there,
/// kill's mark cannot stop such a start.
enum class Starts { may_come, have_answered };

/// Ends all processes of the run on the remote's hosts, in one step per host, even if several
/// machines are reached through it. If the run's folder is gone, the killfile `file` says whether
/// another `dtool kill` had proven that nothing is left; empty: there is no file to ask.
KillReport end_run(Console& console, ssh::Remote& remote, const killfiles::Killfile& killfile,
                   std::chrono::milliseconds grace, const std::filesystem::path& file = {},
                   Starts starts = Starts::may_come);

/// Whether the answer to a kill_command proves that nothing is left on its host.
bool is_proven_ended(const ssh::HostResult& result);

/// Deletes the run's folders on the hosts. Logs and outputs lie elsewhere and stay.
void remove_state(ssh::Remote& remote, const killfiles::Killfile& killfile);

/// Deletes the folders of a run of which nothing is left, then its killfile. First it records in
/// the killfile that nothing is left: another kill, at the same time or after an interruption here,
/// finds the folders gone and reads why.
void forget_run(ssh::Remote& remote, killfiles::Killfile killfile,
                const std::filesystem::path& file);

/// Deletes the run's empty folder on hosts that were checked but where nothing was started. After
/// an interrupt no host is asked: a later run's check deletes such folders when they are a day old.
void discard_run_folders(ssh::Remote& remote, const std::string& run_id);

/// The killfile that `record` has written. If writing fails, nothing may be started: deletes the
/// run's folders on the hosts, says so, and throws `record`'s exception.
killfiles::Killfile record_or_discard(Console& console, ssh::Remote& remote,
                                      const std::string& run_id,
                                      const std::function<killfiles::Killfile()>& record);

}  // namespace dtool::cli
