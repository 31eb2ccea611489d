// fork, exec, pipes, waitpid. Standard error comes through here for the sake of its last line:
// a library that ends the process tells nobody else why.
#include "trainer/launch/worker_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace dtool::trainer {
namespace {

constexpr std::size_t kLongestLastLine = 500;

struct Pipe {
  int reading = -1;
  int writing = -1;
};

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {ends[0], ends[1]};
}

[[noreturn]] void become_worker(const WorkerCommand& command, pid_t parent, int last_words,
                                int standard_error, const sigset_t& mask) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kFailed);  // it died before the line above
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  dup2(standard_error, STDERR_FILENO);
  fcntl(last_words, F_SETFD, 0);
  setenv(kLastWordsVariable, fmt::format("{}", last_words).c_str(), 1);
  for (const auto& each : command.environment) {
    const auto equals = each.find('=');
    setenv(each.substr(0, equals).c_str(), each.c_str() + equals + 1, 1);
  }
  std::vector<char*> arguments;
  for (const auto& each : command.arguments) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  execv(command.program.c_str(), arguments.data());
  say_last_words(
      fmt::format("cannot start {}: {}", command.program.string(), std::strerror(errno)));
  _exit(kFailed);
}

/// What is in the pipe now.
std::string read_some(int descriptor) {
  char buffer[8192];
  const auto size = read(descriptor, buffer, sizeof buffer);
  return size > 0 ? std::string(buffer, static_cast<std::size_t>(size)) : "";
}

/// `message\nhint: ...\n`, as say_last_words writes it.
void take_apart(const std::string& said, WorkerEnd& end) {
  constexpr std::string_view kHint = "\nhint: ";
  const auto hint = said.find(kHint);
  end.words = said.substr(0, std::min(hint, said.find_last_not_of('\n') + 1));
  if (hint == said.npos) return;
  end.hint = said.substr(hint + kHint.size());
  end.hint.erase(end.hint.find_last_not_of('\n') + 1);
}

}  // namespace

WorkerProcesses::WorkerProcesses(const std::vector<WorkerCommand>& commands, const sigset_t& mask) {
  for (const auto& each : commands) workers_.push_back(start(each, mask));
}

WorkerProcesses::~WorkerProcesses() {
  for (const Worker& each : workers_) {
    if (each.last_words >= 0) close(each.last_words);
    if (each.standard_error >= 0) close(each.standard_error);
  }
}

WorkerProcesses::Worker WorkerProcesses::start(const WorkerCommand& command, const sigset_t& mask) {
  const Pipe last_words = make_pipe();
  const Pipe standard_error = make_pipe();
  std::fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "cannot start a worker");
  if (child == 0) {
    become_worker(command, parent, last_words.writing, standard_error.writing, mask);
  }
  close(last_words.writing);
  close(standard_error.writing);
  return {child, command.rank, last_words.reading, standard_error.reading, "", false, true};
}

bool WorkerProcesses::any_running() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.running; });
}

void WorkerProcesses::signal(int signal) const {
  for (const Worker& each : workers_) {
    if (each.running) kill(each.process, signal);
  }
}

void WorkerProcesses::add_to(std::vector<pollfd>& waiting) const {
  for (const Worker& each : workers_) {
    if (each.standard_error >= 0) waiting.push_back({each.standard_error, POLLIN, 0});
  }
}

void WorkerProcesses::relay() {
  for (Worker& each : workers_) relay(each);
}

void WorkerProcesses::relay(Worker& worker) {
  char buffer[8192];
  while (worker.standard_error >= 0) {
    const auto size = read(worker.standard_error, buffer, sizeof buffer);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size <= 0) {
      close(worker.standard_error);
      worker.standard_error = -1;
      return;
    }
    // Nobody is left to be told where this fails.
    [[maybe_unused]] const auto written =
        write(STDERR_FILENO, buffer, static_cast<std::size_t>(size));
    for (const char each : std::string_view(buffer, static_cast<std::size_t>(size))) {
      if (each == '\n') {
        worker.line_is_open = false;
        continue;
      }
      const bool is_blank = each == ' ' || each == '\t' || each == '\r';
      if (!worker.line_is_open && is_blank) continue;
      if (!worker.line_is_open) worker.last_line.clear();
      worker.line_is_open = true;
      if (worker.last_line.size() < kLongestLastLine) worker.last_line += each;
    }
  }
}

std::optional<WorkerEnd> WorkerProcesses::reap() {
  for (Worker& each : workers_) {
    int status = 0;
    if (!each.running || waitpid(each.process, &status, WNOHANG) != each.process) continue;
    each.running = false;
    relay(each);
    WorkerEnd end;
    end.rank = each.rank;
    end.status = status;
    take_apart(read_some(each.last_words), end);
    end.last_error = each.last_line;
    return end;
  }
  return std::nullopt;
}

}  // namespace dtool::trainer
