// A job: a bash script that runs on a host in a detached screen session, with a state folder from
// which anyone with the keys can tell how it is doing, read its log, and end it. `dtool run` and
// `dtool config` start jobs.
//
// State folder: `host` (where it was started: host::identify_host), `script` (what runs;
// `supervise`, where it is among the job's files, decides how often), `process` (pid, start time,
// boot id of the session's leader), `log`, `exit_code` (written last, when the script has ended),
// `killed` (written first, by kill). Where a scheduler runs the job instead of a
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

namespace dtool::host {
struct KillRequest;
}

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
  std::string host = {};   ///< the only host to start on, in the words of
                           ///< ssh/host/identity.h; written to the file `host`; empty: any
  std::string begin = {};  ///< defines `begin` for start.sh; empty: a screen session
};

/// What becomes of a log that is there already.
enum class OldLog { append, replace };

/// Starts the job, unless kill was there first or it was started before. Where the beginning is
/// told, waits for it, up to 5 s. The answer is read by
/// read_start.
Command start_command(const ScreenJob& job, OldLog old_log);

/// Nothing if the job runs; else one sentence on why not.
std::optional<std::string> read_start(const HostResult& result);

/// The id that a scheduler gave a job that was started; nothing if none has it.
std::optional<std::string> read_job_id(const HostResult& result);

/// Ends a run on a host and looks again (ssh/host/kill.h).
Command kill_command(const host::KillRequest& request);

}  // namespace dtool::ssh
