#include "cli/run/host/rank.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>

#include "cli/run/host/job.h"
#include "cli/run/host/last_words.h"
#include "cli/run/host/session.h"
#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/host/words.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

constexpr int kMost = 10'000'000;
constexpr std::uint32_t kMostTasks = 1024;  // of a node
constexpr std::size_t kMostNodes = 100'000;

/// How this process was started, and what it starts.
struct Start {
  std::vector<std::string> script;
  std::string record;       ///< the file that tells of this process
  bool is_watched = false;  ///< dtool-host keep reads the record all the time
  bool has_input = false;   ///< signals for the program come as words on standard input
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int number_in(const char* name) {
  const auto number = parse_number<int>(variable(name));
  if (!number || *number < 0 || *number > kMost)
    throw std::runtime_error(std::string("the variable ") + name + " is not a number");
  return *number;
}

Start started_by_mpirun(const std::vector<std::string>& words) {
  const int attempt = number_among(words, 2, 0, kMost);
  const std::string& state = words[1];
  const int rank = number_in("OMPI_COMM_WORLD_RANK");
  const std::string local_rank = std::to_string(number_in("OMPI_COMM_WORLD_LOCAL_RANK"));
  if (exists(state + "/supervise"))
    ::setenv("DTOOL_LAST_WORDS", (state + "/" + last_words_file(attempt, rank)).c_str(), 1);
  // In a session of its own: mpirun sends KILL to a process's group one second after TERM, and how
  // long a program may take to end well is dtool's to say.
  Start start{{"setsid", "bash", "./rank", std::to_string(rank), local_rank},
              state + "/ranks/" + std::to_string(attempt) + "." + local_rank,
              true,
              false};
  start.script.insert(start.script.end(), words.begin() + 2, words.end());
  return start;
}

/// The numbers of a process: machines, machine, rank, local rank, world size, processes of the
/// machine.
using Numbers = std::vector<int>;

Numbers numbers_of_slurm() {
  const auto machine = static_cast<std::size_t>(number_in("SLURM_NODEID"));
  const std::vector<int> tasks = parse_tasks_per_node(variable("SLURM_STEP_TASKS_PER_NODE"));
  if (machine >= tasks.size())
    throw std::runtime_error("Slurm does not say how many tasks this node has");
  return {number_in("SLURM_STEP_NUM_NODES"), static_cast<int>(machine),
          number_in("SLURM_PROCID"),         number_in("SLURM_LOCALID"),
          number_in("SLURM_STEP_NUM_TASKS"), tasks[machine]};
}

Numbers numbers_of_grid_engine(const std::vector<std::string>& words) {
  const auto number = [&words](std::size_t at) { return number_among(words, at, 0, kMost); };
  return {number(11), number(7), number(8), number(9), number(11) * number(12), number(12)};
}

Start started_by_scheduler(const std::vector<std::string>& words) {
  const bool is_slurm = words[0] == "slurm";
  for (const std::size_t at : {2, 4, 5}) number_among(words, at, 0, kMost);
  const int first = number_among(words, 6, 0, kMost);
  const Numbers numbers = is_slurm ? numbers_of_slurm() : numbers_of_grid_engine(words);
  const std::string& run = words[1];
  const std::string place = std::to_string(first + numbers[1]);
  Start start{{"bash", run + "/machine0/rank"},
              run + "/machine" + place + "/ranks/" + std::to_string(numbers[2]),
              false,
              !is_slurm};
  if (!is_slurm) start.script.insert(start.script.begin(), "setsid");
  start.script.insert(start.script.end(), words.begin() + 1, words.begin() + 6);
  start.script.push_back(place);
  for (const int each : numbers) start.script.push_back(std::to_string(each));
  start.script.push_back(is_slurm ? variable("SLURMD_NODENAME") : words[10]);
  // A scheduler may have been told to hand on no variables.
  ::setenv("DTOOL_RUN_ID", run.substr(run.rfind('/') + 1).c_str(), 1);
  return start;
}

/// The disk may be full, and the program goes on.
void note(const std::string& file, const std::string& line) {
  try {
    write_file(file, line);
  } catch (const std::runtime_error&) {
  }
}

/// Sends this process the signals whose names come on standard input. Returns the process that
/// does.
pid_t hear_words() {
  const pid_t heard_by = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::setsid();
  try {
    std::string said;
    while (const auto bytes = read_some(STDIN_FILENO)) {
      said += *bytes;
      for (std::size_t end = said.find('\n'); end != said.npos; end = said.find('\n')) {
        if (said.substr(0, end) == "TERM") ::kill(heard_by, SIGTERM);
        if (said.substr(0, end) == "USR1") ::kill(heard_by, SIGUSR1);
        said.erase(0, end + 1);
      }
    }
  } catch (const std::runtime_error&) {
    // There is no input any more.
  }
  ::_exit(0);
}

int follow(const Start& start) {
  sigset_t heard;
  ::sigemptyset(&heard);
  for (const int each : {SIGCHLD, SIGTERM, SIGINT, SIGUSR1}) ::sigaddset(&heard, each);
  if (start.has_input) ::sigaddset(&heard, SIGUSR2);  // of qdel, and of the time limit
  ::sigprocmask(SIG_BLOCK, &heard, nullptr);
  make_folder(folder_of(start.record));
  const auto self = find_process(::getpid());
  if (start.is_watched && self)
    note(start.record, std::to_string(self->pid) + " " + std::to_string(self->start) + "\n");
  tell_script_this_program();
  const pid_t program = start_program(start.script, {}, Input::nothing, Interrupts::heard);
  if (start.is_watched) note(start.record + ".program", std::to_string(program) + "\n");
  const pid_t hearing = start.has_input ? hear_words() : -1;

  std::optional<int> code;
  bool is_told = false;  // to end
  const auto hear = [&](int signal) {
    if (signal == SIGUSR2) signal = SIGTERM;
    if (signal != SIGUSR1) {
      if (is_told) return;  // once is enough for what writes a checkpoint then
      is_told = true;
      if (start.is_watched) note(start.record + ".told", "");
    }
    if (!code) ::kill(program, signal);
  };
  while (!code) {
    const int signal = ::sigwaitinfo(&heard, nullptr);
    if (signal == SIGCHLD) code = wait_for_child(program, 0ms);
    if (signal > 0 && signal != SIGCHLD) hear(signal);
  }
  // Who ends all processes of a host one by one may meet the program a moment before this one.
  constexpr timespec kForWord{0, 300'000'000};
  if (*code > 128 && !is_told) {
    const int signal = ::sigtimedwait(&heard, nullptr, &kForWord);
    if (signal > 0 && signal != SIGCHLD) hear(signal);
  }
  if (hearing > 0) ::kill(hearing, SIGKILL);
  if (start.is_watched) note(start.record + ".code", std::to_string(*code) + "\n");
  if (!start.is_watched) note(start.record, std::to_string(*code) + (is_told ? " told\n" : " \n"));
  return *code;
}

}  // namespace

std::vector<int> parse_tasks_per_node(std::string_view text) {
  std::vector<int> tasks;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const std::size_t times = item.find("(x");
    const auto count = parse_number<std::uint32_t>(item.substr(0, times));
    std::optional<std::uint32_t> nodes = 1;
    if (times != item.npos && item.ends_with(')'))
      nodes = parse_number<std::uint32_t>(item.substr(times + 2, item.size() - times - 3));
    if (!count || !nodes || *count > kMostTasks || *nodes + tasks.size() > kMostNodes) return {};
    tasks.insert(tasks.end(), *nodes, std::max(1, static_cast<int>(*count)));
  }
  return tasks;
}

int run_rank(const std::vector<std::string>& words) {
  const std::string launcher = words.empty() ? "" : words[0];
  if (launcher == "mpi") return follow(started_by_mpirun(words));
  if (launcher == "slurm" || launcher == "gridengine") return follow(started_by_scheduler(words));
  throw std::runtime_error("rank: a word is missing");
}

}  // namespace dtool::host
