// SPDX-License-Identifier: MIT
// Requests to a rank by signals: SIGUSR1 for a checkpoint, SIGTERM for a checkpoint before the end.
// Rank 0 writes it between two steps (training.cpp); ranks/request_exchange.h tells rank 0 about
// other ranks' signals.
#pragma once

#include <chrono>
#include <cstdint>

namespace dtool::trainer {

/// Makes this process and its children ignore SIGUSR1. Called first in main, because schedulers
/// send the signal to all processes.
void ignore_checkpoint_signal();

/// From here on SIGUSR1 is a request, and so is SIGTERM: it ends this process only in
/// `end_if_terminated` or after kTerminationGrace. SIGHUP counts as SIGTERM unless it was ignored:
/// when a session's first process is terminated, the others get SIGHUP.
void await_requests();

/// From here on SIGTERM and SIGHUP end this process at once; so do those that came earlier.
void await_no_requests();

/// The signal that has asked for a checkpoint since the last call; 0: none.
int take_request();

/// Acts as if `signal` had come, because another rank received it.
void pass_request(int signal);

/// Whether SIGTERM has come and this process still has to end.
bool is_terminated();

/// Ends this process by SIGTERM if is_terminated().
void end_if_terminated();

/// How long a terminated rank waits for the end of a step and for rank 0's checkpoint. (Slurm gives
/// 30 s, unless KillWait says otherwise.)
inline constexpr std::chrono::seconds kTerminationGrace{20};

/// When `take_request` returned `signal` last.
std::chrono::steady_clock::time_point last_taken(int signal);

/// Notes that rank 0 has written the checkpoint that SIGTERM asked for.
void note_end_is_kept();
/// How many of these checkpoints were written.
std::int64_t ends_kept();
/// Whether the one was written for which `take_request` returned SIGTERM last.
bool last_end_is_kept();

/// While one exists, this process waits for the disk and then ends by itself: nothing that happens
/// to other ranks meanwhile may end it.
class AnswersTermination {
 public:
  AnswersTermination();
  ~AnswersTermination();
  AnswersTermination(const AnswersTermination&) = delete;
  AnswersTermination& operator=(const AnswersTermination&) = delete;
};
bool answers_termination();

}  // namespace dtool::trainer
