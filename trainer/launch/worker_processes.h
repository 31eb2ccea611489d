// The worker processes of this machine: started, listened to, and told apart when they end. They
// die with this process (PR_SET_PDEATHSIG).
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/launch/cause.h"

namespace dtool::trainer {

/// One worker process to start.
struct WorkerCommand {
  std::filesystem::path program;
  std::vector<std::string> arguments;    ///< argv, from argv[0]
  std::vector<std::string> environment;  ///< NAME=VALUE, set on top of this process's own
  int rank = 0;
};

class WorkerProcesses {
 public:
  /// Starts them all; their signals are masked as in `mask`. Throws std::system_error.
  WorkerProcesses(const std::vector<WorkerCommand>& commands, const sigset_t& mask);
  ~WorkerProcesses();
  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;

  bool any_running() const;
  void signal(int signal) const;  ///< to all that run

  /// What a poll should wait for: their standard errors.
  void add_to(std::vector<pollfd>& waiting) const;

  /// Hands on what they have written to standard error.
  void relay();

  /// A worker that has ended, if any has; its words are told apart from a hint.
  std::optional<WorkerEnd> reap();

 private:
  struct Worker {
    pid_t process = -1;
    int rank = 0;
    int last_words = -1;      ///< read end of its pipe
    int standard_error = -1;  ///< likewise
    std::string last_line;
    bool line_is_open = false;
    bool running = false;
  };
  static Worker start(const WorkerCommand& command, const sigset_t& mask);
  static void relay(Worker& worker);

  std::vector<Worker> workers_;
};

}  // namespace dtool::trainer
