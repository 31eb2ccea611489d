// SPDX-License-Identifier: MIT
// A job: a bash script that runs on a host in a detached screen session. From its state folder
// anyone with the keys can see how it is doing, read its log, and end it. `dtool run` and `dtool
// config` start jobs.
//
// Files of the state folder:
//   `host`       where the job was started (host::identify_host)
//   `script`     what runs; if the job has a file `supervise`, that decides how often
//   `process`    pid, start time and boot id of the session's leader
//   `log`
//   `exit_code`  written last, when the script has ended
//   `killed`     written first, by kill
// If a scheduler runs the job, `probe` asks the scheduler about it and `end` ends it; status and
// kill read them from here.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ssh/remote.h"
#include "ssh/wire/run.h"

namespace dtool::ssh {

/// Whether a job's script reports its beginning: by a file `begun` in the state folder, or by
/// `fault` with the reason why it did not begin.
enum class Beginning { assumed, told };

/// One job on one host. Paths are on the host, absolute or from `~/`.
struct ScreenJob {
  /// The run's id, in the environment of every process of the job as DTOOL_RUN_ID.
  std::string run_id;
  std::string session;  ///< the screen session's name
  std::string state_folder;
  std::string log;     ///< the file for standard output and error; the state folder links to it
  std::string script;  ///< bash; its exit code is the job's
  std::vector<std::pair<std::string, std::string>> files =
      {};  ///< name and content of files to write into the state folder first
  Beginning beginning = Beginning::assumed;
  std::string host = {};   ///< the only host to start on, as ssh/host/process_table.h writes it;
                           ///< also the content of the file `host`; empty: any
  std::string begin = {};  ///< defines `begin`; empty: a screen session
};

/// What happens to a log that exists already.
enum class OldLog { append, replace };

/// Starts the job, unless kill came first or it was started before. A job whose beginning is told
/// is waited for, up to 5 s. reply_to_start() reads the answer.
Command start_command(const ScreenJob& job, OldLog old_log);

/// The host's reply. Nothing if the job does not run; then `result` says why.
std::optional<host::StartReply> reply_to_start(HostResult& result);

/// Ends a run on a host and looks again (ssh/host/kill.h).
inline Command kill_command(const host::KillRequest& request) {
  return ask_host(request);
}

}  // namespace dtool::ssh
