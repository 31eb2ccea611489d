// What signals ask of a rank: SIGUSR1 a checkpoint, SIGTERM a checkpoint before the end. Rank 0
// writes it between two steps (training.cpp); ranks/request_exchange.h tells it what others are
// asked.
#pragma once

#include <chrono>
#include <cstdint>

namespace dtool::trainer {

/// SIGUSR1 ends neither this process nor what it becomes or starts. First thing in main: schedulers
/// send it to whatever there is.
void ignore_checkpoint_signal();

/// From here on SIGUSR1 is a request, and so is SIGTERM, which ends this process only in
/// `end_if_terminated` or when kTerminationGrace is over. SIGHUP counts as SIGTERM, unless it was
/// ignored: who terminates a session's first process hangs up on the others.
void await_requests();

/// SIGTERM and SIGHUP end this process at once again, as do those that came meanwhile.
void await_no_requests();

/// The signal that asked for a checkpoint since the last call; 0: none did.
int take_request();

/// As if `signal` had come: another rank was asked.
void pass_request(int signal);

/// SIGTERM has come, and this process has still to end.
bool is_terminated();

/// Ends this process by SIGTERM if it is_terminated.
void end_if_terminated();

/// So long a terminated rank waits for the end of a step and for the checkpoint of rank 0. (Slurm
/// gives 30 s, unless KillWait says otherwise.)
inline constexpr std::chrono::seconds kTerminationGrace{20};

/// Rank 0 has written the checkpoint that was asked for; and how often it has, and when last.
void note_request_fulfilled();
std::int64_t requests_fulfilled();
std::chrono::steady_clock::time_point last_fulfilled();

}  // namespace dtool::trainer
