// SPDX-License-Identifier: MIT
// The answers to dtool's requests that need no other room of dtool-host: each in the file of its
// subject. They throw std::runtime_error with a sentence where the host cannot do or tell that.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ssh/host/child.h"
#include "ssh/host/members.h"
#include "ssh/wire/check.h"
#include "ssh/wire/run.h"
#include "ssh/wire/tree.h"

namespace dtool::host {

/// Serves one command after another, frames on `input`, replies on `output` in the same order,
/// until the input ends. Returns the exit code of the last one: 2 if a request could not be
/// answered; else 0, or the exit code of the job whose log was followed.
int serve(int input, int output);

/// Whether this host can run a machine's part of a run, and what its user wants to know of it.
/// Makes the run's folder if the request names one. Afterwards this process has the variables of
/// the prepared environment.
CheckReply check_host(const CheckRequest& request);

/// Prepares the host for a set-up script: the user's key, and a folder.
ReadyReply ready_host(const ReadyRequest& request);

/// How many more files a disk can hold, if these are too few for a run; `left`: nothing if it has
/// no such limit.
std::optional<std::uint32_t> too_few_inodes(std::optional<std::uint64_t> left);

/// Whether systemd ends what a user leaves running at log-out. `settings`: the folder of
/// logind.conf and logind.conf.d; `linger_mark`: a file that is there if this user's may go on.
bool ends_at_logout(const std::string& settings, const std::string& linger_mark);

// Whether machine 0 can listen at its address, and the others reach it there: with the same port
// and the same proofs as the sessions of a run (report_port.h, channel.h).

/// Leaves a process behind that listens.
ListenReply listen_for_trial(const ListenRequest& request);
HostClock tell_clock();
ReachReply reach_for_trial(const ReachRequest& request);

/// How machines of recorded runs are doing here. Reads only the ends of files, whatever their size,
/// and writes nothing.
StatusReply tell_status(const StatusRequest& request);

/// What dtool keeps on this host for later runs, with sizes and ages, in the order of its kinds;
/// also what was deleted now, since `dtool clean` deletes of it what nothing uses.
KeptReply tell_kept(const KeptRequest& request);

/// A job's log: whole, its last lines, or as it grows. Writes the frames of the reply to `output`.
/// Returns the job's exit code if the job was followed, else 0.
int send_log(const LogRequest& request, int output);

/// A job whose log is followed: whether it still runs, and how it ended.
class FollowedJob {
 public:
  /// `state`: its state folder. If a scheduler runs the job, another process asks it until
  /// the job has ended (ssh/host/session/scheduled_job.h).
  explicit FollowedJob(std::string state);

  bool runs();
  /// Call it after runs() was false: waits up to a second for the record of the end.
  LogEnd wait_for_end();

 private:
  /// Whether this is another host than the one where the job was started. Then missing files prove
  /// nothing.
  bool is_elsewhere() const;
  /// The end of a job that left no exit code.
  std::string became();

  std::string state_;
  std::optional<Leader> leader_;
  std::unique_ptr<Child> probe_;
};

}  // namespace dtool::host
