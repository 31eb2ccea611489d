// A job: a bash script that runs on a host in a detached screen session, with a state folder from
// which anyone with the keys can tell how it is doing, read its log, and end it. `dtool run` and
// `dtool config` start jobs.
//
// State folder: `host` (where it was started: ssh/job/scripts/identify.sh), `script` and `session`
// (what runs; `supervise`, where it is among the job's files, decides how often), `process` (pid,
// start time, boot id of the session's leader), `log`, `exit_code` (written last, when the script
// has ended), `killed` (written first, by kill). Where a scheduler runs the job instead of a
// session of ours, `probe` tells how to ask after it, and `end` how to end it: who watches and
// kills reads them there.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ssh/remote.h"

namespace dtool::ssh {

/// Whether a job's script says that its program begins: by a file `begun` in the state folder, or
/// `fault` with why it does not.
enum class Beginning { assumed, told };

/// One job on one host. Paths are on the host, absolute or from `~/`.
struct ScreenJob {
  std::string run_id;   ///< in the environment of every process of the job as DTOOL_RUN_ID
  std::string session;  ///< the screen session's name
  std::string state_folder;
  std::string log;  ///< the file that takes standard output and error; the state folder links to it
  std::string script;  ///< bash; its exit code is the job's
  std::vector<std::pair<std::string, std::string>> files =
      {};  ///< name and content, into the state folder first
  Beginning beginning = Beginning::assumed;
  std::string host = {};  ///< the only host to start on, in the words of
                          ///< ssh/job/scripts/identify.sh; written to the file `host`; empty: any
  std::string begin = {};  ///< defines `begin` for start.sh; empty: a screen session
};

/// What becomes of a log that is there already.
enum class OldLog { append, replace };

/// Starts the job, unless kill was there first or it was started before. Where the beginning is
/// told, waits for it, up to 5 s. The answer is read by
/// read_start.
Command start_command(const ScreenJob& job, OldLog old_log);

/// Nothing where the job runs; else one sentence on why not.
std::optional<std::string> read_start(const HostResult& result);

/// Prints the log from byte `offset` on as it grows, until the job has ended; exits with the job's
/// exit code. The last line on standard error is an answer (script.h)
/// `state=exited|stopped|killed|lost`.
Command follow_command(std::string_view state_folder, std::size_t offset);

/// What to end on one host.
struct KillRequest {
  std::string run_id;  ///< empty: sessions alone, as AllenAct's killfiles name them
  std::vector<std::string> sessions;
  std::vector<std::string>
      state_folders;  ///< marked as killed first, so that a start on its way comes to nothing
  std::chrono::milliseconds grace{5000};  ///< between TERM and KILL
};

/// Ends every process of this user that bears the run id, descends from one that does, or shares a
/// job's session, then looks again. Other runs' processes are left alone even there.
Command kill_command(const KillRequest& request);

/// A script that does the same to `run_id` on the host where it runs, but for the processes it
/// descends from and those of its arguments (pids) with their descendants.
std::string end_processes_script(std::string_view run_id, std::chrono::milliseconds grace);

/// What kill_command found.
struct KillOutcome {
  int ended = 0;                  ///< processes that were there and are gone
  int forced = 0;                 ///< of them, those that TERM did not end
  std::vector<std::string> left;  ///< `pid command` of processes that are still there
  std::string cancelled;    ///< what a scheduler had of it and has no more: `job 12`; or empty
  std::string job_left;     ///< why a scheduler may still have some; empty: it has none
  std::string vouched_for;  ///< why nothing can be left on other hosts either; or empty
  std::string host;         ///< who the host is, as killfiles::parse_identity reads it; or empty
  std::string no_folder;    ///< the run's folder, where it is not there; or empty
  std::string unmarked;     ///< a state folder that did not take the mark; or empty
  std::vector<std::string> unseen;  ///< what may be the run's work and cannot be told to be
};

/// Nothing where the answer cannot be read.
std::optional<KillOutcome> read_kill(const HostResult& result);

}  // namespace dtool::ssh
