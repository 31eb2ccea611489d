// SPDX-License-Identifier: MIT
#include "ssh/host/session/rank.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/host/rank_log.h"
#include "ssh/host/session/job.h"
#include "ssh/host/session/last_words.h"
#include "ssh/host/session/rank_logs.h"
#include "ssh/host/session/session.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kMostTasks = 1024;  // the most tasks of a machine
constexpr std::size_t kMostNodes = 100'000;

/// How this process was started, and what it starts.
struct Start {
  std::vector<std::string> script;
  std::string state;  ///< folder of its machine
  int attempt = 0;
  std::vector<int> ranks;   ///< this one; none if it is torchrun, which has ranks of its own
  int processes = 1;        ///< the number of processes of its machine
  std::string record;       ///< the file that tells of this process
  std::string last_words;   ///< the file for its program's message
  bool is_watched = false;  ///< dtool-host keep reads the record all the time
  bool has_input = false;   ///< signals for the program come as words on standard input
};

[[noreturn]] void refuse_words() {
  throw std::runtime_error("rank: a word is missing");
}

std::vector<int> ranks_of(const std::vector<std::string>& words, std::size_t torchrun, int rank) {
  if (words.size() <= torchrun) refuse_words();
  if (words[torchrun] == "yes") return {};
  if (words[torchrun] == "no") return {rank};
  throw std::runtime_error("rank: whether it is torchrun is yes or no, not " + words[torchrun]);
}

Start started_on_machine(const std::vector<std::string>& words) {
  constexpr std::size_t kTorchrun = 5;
  const int processes = number_among(words, 4);
  const int attempt = number_among(words, 6);
  const std::string& state = words[1];
  const int rank = number_among(words, 2);
  const std::string local_rank = std::to_string(number_among(words, 3));
  const std::string last_words = state + "/" + last_words_file(attempt, rank);
  if (exists(state + "/supervise")) ::setenv("DTOOL_LAST_WORDS", last_words.c_str(), 1);
  // In a session of its own: mpirun sends KILL to a process's group one second after TERM, and how
  // long a program may take to end well is dtool's to say.
  Start start{{"setsid", "bash", "./rank"},
              state,
              attempt,
              ranks_of(words, kTorchrun, rank),
              processes,
              state + "/ranks/" + std::to_string(attempt) + "." + local_rank,
              last_words,
              true,
              false};
  start.script.insert(start.script.end(), words.begin() + 2, words.begin() + 4);
  start.script.insert(start.script.end(), words.begin() + kTorchrun + 1, words.end());
  return start;
}

std::string value_of(const std::string& variable) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  if (variable.empty() || variable.find_first_not_of(kLetters) != variable.npos)
    throw std::runtime_error("rank: " + variable + " is not the name of a variable");
  const char* value = std::getenv(variable.c_str());
  return value == nullptr ? "" : value;
}

Start started_in_job(std::vector<std::string> words) {
  constexpr std::size_t kFirst = 6, kTorchrun = 7, kHow = 8, kMachine = 10, kRank = 11,
                        kProcesses = 14, kNode = 15;
  if (words.size() != kNode + 1) refuse_words();
  const bool is_in_words = words[kHow] == "words";
  if (!is_in_words && words[kHow] != "variables") refuse_words();
  const auto numbers = words.begin() + kHow + 1;
  if (!is_in_words) std::transform(numbers, words.end(), numbers, value_of);
  for (const std::size_t at : {2, 4, 5, 6, 9, 10, 11, 12, 13}) number_among(words, at);
  const int machine = number_among(words, kMachine);
  const std::vector<int> processes = parse_tasks_per_node(words[kProcesses]);
  const std::size_t which = processes.size() == 1 ? 0 : static_cast<std::size_t>(machine);
  if (which >= processes.size())
    throw std::runtime_error("rank: how many processes this machine has is not told");
  if (std::ranges::any_of(words[kNode], [](unsigned char each) { return each <= ' '; }))
    throw std::runtime_error("rank: the machine's name is more than a word");
  const std::string& run = words[1];
  words[kProcesses] = std::to_string(processes[which]);
  words[kFirst] = std::to_string(number_among(words, kFirst) + machine);
  const std::string state = run + "/machine" + words[kFirst];
  const int rank = number_among(words, kRank);
  Start start{{"bash", run + "/machine0/rank"},
              state,
              number_among(words, 2),
              ranks_of(words, kTorchrun, rank),
              processes[which],
              state + "/ranks/" + words[kRank],
              state + "/" + last_words_file(number_among(words, 2), rank),
              false,
              is_in_words};
  if (is_in_words) start.script.insert(start.script.begin(), "setsid");
  start.script.insert(start.script.end(), words.begin() + 1, words.begin() + kTorchrun);
  start.script.insert(start.script.end(), numbers, words.end());
  // A scheduler may have been told to hand on no variables.
  ::setenv("DTOOL_RUN_ID", run.substr(run.rfind('/') + 1).c_str(), 1);
  ::setenv("DTOOL_LAST_WORDS", start.last_words.c_str(), 1);
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
/// does; it ends with this one, whose pid may then be another's.
pid_t hear_words(RankLogs& logs) {
  const pid_t heard_by = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  end_with(heard_by);
  logs.let_go();
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
  // A scheduler may announce KILL by USR2.
  const sigset_t heard =
      block_signals({SIGCHLD, SIGTERM, SIGINT, SIGUSR1, start.has_input ? SIGUSR2 : SIGUSR1});
  sigset_t to_end = heard;
  ::sigdelset(&to_end, SIGCHLD);
  make_folder(folder_of(start.record));
  const auto self = find_process(::getpid());
  if (start.is_watched && self)
    note(start.record, std::to_string(self->pid) + " " + std::to_string(self->start) + "\n");
  tell_script_this_program();
  RankLogs logs(start.state, start.attempt, start.ranks, start.processes);
  pid_t hearing = start.has_input ? hear_words(logs) : -1;
  if (logs.are_open()) ::setenv("DTOOL_RANK_LOG", logs.path(0).c_str(), 1);
  const pid_t program = start_program(start.script, {}, Input::nothing);
  logs.start({program});
  if (start.is_watched) note(start.record + ".program", std::to_string(program) + "\n");

  std::optional<int> code;
  bool is_told = false;  // the program was told to end
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
    constexpr timespec kSecond{1, 0};
    const int signal = ::sigtimedwait(&heard, nullptr, &kSecond);
    if (!start.is_watched) note_log_time(start.state);  // else the session does
    if (signal == SIGCHLD) {
      code = wait_for_child(program, 0ms);
      logs.keep();
      // One that was killed is replaced: else this process would hear of no end.
      const auto heard_to_end = hearing > 0 ? wait_for_child(hearing, 0ms) : std::nullopt;
      if (heard_to_end) hearing = *heard_to_end == 0 ? -1 : hear_words(logs);
    }
    if (signal > 0 && signal != SIGCHLD) hear(signal);
  }
  logs.end(0);
  logs.finish();
  // A kill of all processes of a host may reach the program a moment before this one.
  constexpr timespec kForWord{0, 300'000'000};
  if (*code > 128 && !is_told) {
    const int signal = ::sigtimedwait(&heard, nullptr, &kForWord);
    if (signal > 0 && signal != SIGCHLD) hear(signal);
  }
  if (start.is_watched) {
    note(start.record + ".code", std::to_string(*code) + "\n");
  } else {
    const std::string rank = start.ranks.empty() ? "" : std::to_string(start.ranks.front());
    const RankEnd end{"", *code, read_last_words(start.last_words),
                      last_line_of_rank(start.state, start.attempt, rank)};
    const bool is_aftermath = meaning_of(end) == Meaning::aftermath;
    note(start.record, std::to_string(*code) + (is_told || is_aftermath ? " told\n" : " \n"));
    // The first process to end with a failure has the others ended, and it is to be the other one.
    constexpr timespec kForTerm{1, 0};
    if (is_aftermath && !is_told) ::sigtimedwait(&to_end, nullptr, &kForTerm);
  }
  if (hearing > 0) ::kill(hearing, SIGKILL);
  return *code;
}

}  // namespace

std::vector<int> parse_tasks_per_node(std::string_view text) {
  std::vector<int> tasks;
  while (!text.empty()) {
    const std::string_view item = cut(text, ',');
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
  const std::string kind = words.empty() ? "" : words[0];
  if (kind == "machine") return follow(started_on_machine(words));
  if (kind == "job") return follow(started_in_job(words));
  refuse_words();
}

}  // namespace dtool::host
