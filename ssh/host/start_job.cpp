// SPDX-License-Identifier: MIT
#include "ssh/host/start_job.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "killfiles/channel/sha256.h"
#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/members.h"
#include "ssh/host/process_table.h"
#include "ssh/host/strangers.h"
#include "ssh/host/versions.h"
#include "ssh/wire/words.h"

namespace dtool::host {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kSetUp = "config_";  // begins the id of every set-up script
constexpr milliseconds kBetweenChecks{20};
// The time that a session has until it has written who it is.
constexpr milliseconds kForSession{10'000};
constexpr milliseconds kForBeginning{5'000};

/// Why a job does not start.
class NotStarted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void check_host(const std::string& expected) {
  if (expected.empty()) return;
  const std::string found = identify_host();
  if (found != expected)
    throw NotStarted("another host answers now than the one that was looked at: " + found +
                     ", not " + expected);
}

/// Where a file goes: into the state folder; `../NAME` into the run's, for all its machines.
struct Target {
  std::string folder;
  std::string name;
};

Target find_target(const std::string& state, const std::string& name) {
  constexpr std::string_view kAbove = "../";
  const bool is_above = name.starts_with(kAbove);
  const std::string plain = is_above ? name.substr(kAbove.size()) : name;
  if (plain.empty() || plain.find('/') != plain.npos || plain[0] == '.')
    throw NotStarted("a file of a job cannot be called " + name);
  return {is_above ? folder_of(state) : state, plain};
}

/// All files are whole before the first bears its name, since kill reads some of them.
void write_files(const std::string& state, const std::vector<File>& files) {
  const std::string name = state.substr(folder_of(state).size() + 1);
  const std::string made = folder_of(state) + "/.new_" + name;
  const NotStarted cannot("cannot write into " + state + ": " +
                          guess_lack_of_room(folder_of(state)));
  if (!make_folder(made)) throw NotStarted(with_reason("cannot make the folder " + made));
  for (const File& each : files) {
    const std::string file = made + "/" + find_target(state, each.name).name;
    if (!write_in_place(file, each.content.text)) throw cannot;
  }
  for (const File& each : files) {
    const Target target = find_target(state, each.name);
    const std::string from = made + "/" + target.name;
    const std::string to = target.folder + "/" + target.name;
    if (::rename(from.c_str(), to.c_str()) != 0) throw cannot;
  }
  ::rmdir(made.c_str());
}

void prepare_log(const StartRequest& request, const std::string& state, const std::string& log) {
  const bool is_written = request.has_fresh_log ? write_in_place(log, "") : append_to(log, "");
  if (!is_written) throw NotStarted("cannot write " + log);
  const std::string link = state + "/log";
  ::unlink(link.c_str());
  const bool has_times = append_to(state + "/log_times", "");
  if (::symlink(log.c_str(), link.c_str()) != 0 || !has_times)
    throw NotStarted("cannot write into " + state);
}

/// Makes it run as its launcher has it: a scheduler's submission, say. What it answers.
StartReply begin_by_script(const StartRequest& request, const std::string& state,
                           const std::string& log) {
  const std::string head = std::string(kAnswerFunction) +
                           "fail() { answer error \"$1\"; exit 1; }\n"
                           "begin_in_session() { :; }\n"
                           "run_id=$1 session=$2 state=$3 log=$4\n";
  const ChildResult begun = run_program({"bash", "-c", head + request.begin.text + "\nbegin\n",
                                         "dtool", request.run_id, request.session, state, log},
                                        std::chrono::seconds(55), state);
  if (begun.is_missing) throw NotStarted("bash is not installed");
  StartReply reply;
  for (const auto& [name, value] : read_pairs(begun.out)) {
    if (name == "error") throw NotStarted(value.empty() ? "the host did not say why" : value);
    if (name == "started") reply.started = value;
    if (name == "job") reply.job = value;
  }
  if (begun.timed_out) throw NotStarted("its start took longer than 55 s");
  if (!begun.ok())
    throw NotStarted("the start script ended with exit code " + std::to_string(begun.exit_code) +
                     ": " + as_line(begun.err));
  return reply;
}

/// Waits until `is_there`, or for that long. Whether it is.
template <typename Condition>
bool wait_for(Condition is_there, milliseconds limit) {
  for (milliseconds waited{0}; !is_there(); waited += kBetweenChecks) {
    if (waited >= limit) return false;
    pause(kBetweenChecks);
  }
  return true;
}

std::string begin_in_session(const StartRequest& request, const std::string& state,
                             const std::string& log) {
  std::string fault;
  for (const Holder holder : find_holders()) {
    // One that is installed and does not start counts as missing: screen where /run/screen is not
    // as it wants it, say.
    if (!fault.empty()) append_to(log, "dtool: " + fault + "\n");
    if (!write_in_place(state + "/holder", name_of(holder) + "\n"))
      throw NotStarted("cannot write into " + state + ": " + guess_lack_of_room(folder_of(state)));
    fault = hold_session(holder, request.session, state, log);
    if (fault.empty()) break;
  }
  if (!fault.empty()) throw NotStarted(fault);
  if (!wait_for([&state] { return exists(state + "/process"); }, kForSession))
    throw NotStarted("the session " + request.session + " did not come up");
  if (request.is_told) {
    // That a program is missing is known at once; an environment that takes longer to set up goes
    // on by itself.
    wait_for(
        [&state] {
          return !read_line(state + "/fault").empty() || exists(state + "/begun") ||
                 exists(state + "/exit_code");
        },
        kForBeginning);
    const std::string why = read_line(state + "/fault");
    if (!why.empty()) throw NotStarted(why);
  }
  return read_line(state + "/process");
}

void refuse_where_killed(const std::string& state) {
  if (exists(state + "/killed")) throw NotStarted("dtool kill came first");
}

StartReply start(const StartRequest& request) {
  const std::string state = expand_home(request.state_folder);
  const std::string log = expand_home(request.log);
  ::setenv("DTOOL_RUN_ID", request.run_id.c_str(), 1);
  check_host(request.expected_host);
  // The run's folder was made when the host was looked at. `kill --delete` takes it away, and with
  // it the leave to start.
  if (!is_folder(folder_of(state))) throw NotStarted("dtool kill came first");
  Descriptor lock;
  {
    const OwnersAlone private_files;
    if (!make_folder(state)) throw NotStarted(with_reason("cannot make the folder " + state));
    if (!make_folders(folder_of(log)))
      throw NotStarted(with_reason("cannot make the folder of " + log));
    // It may have been made since the host was looked at.
    if (const auto stranger = find_stranger(log, Strangers::uninvited))
      throw NotStarted(to_string(*stranger) + ", who could change the outputs there");
    // Under the lock there is either kill's mark or a session that bears the run's id, so no start
    // slips past a kill.
    lock = lock_file(state + "/lock", 60'000);
    if (!lock.is_open()) throw NotStarted(with_reason("cannot lock " + state));
    refuse_where_killed(state);
    if (exists(state + "/process")) throw NotStarted("it was started before");
    write_files(state, request.files);
  }
  // Of two launchers that have seen no set-up script, one alone starts its own.
  Descriptor one_set_up;
  if (request.run_id.starts_with(kSetUp)) {
    // Hosts may share the folder.
    const std::string lock_path = folder_of(folder_of(folder_of(state))) + "/set_up." +
                                  to_hex(sha256(identify_host())).substr(0, 16) + ".lock";
    one_set_up = lock_file(lock_path, 20'000);
    if (!one_set_up.is_open()) throw NotStarted(with_reason("cannot lock " + lock_path));
    if (!find_set_up(request.run_id).empty())
      throw NotStarted("a set-up script is still running there");
  }
  prepare_log(request, state, log);
  // Kill waits for the lock for half a minute, and leaves its mark without it then.
  refuse_where_killed(state);
  StartReply reply;
  if (!request.begin.text.empty()) reply = begin_by_script(request, state, log);
  if (reply.started.empty()) reply.started = begin_in_session(request, state, log);
  return reply;
}

}  // namespace

std::string find_set_up(const std::string& but) {
  const std::string runs = expand_home("~/.dtool/runs");
  for (const std::string& run : list_folder(runs)) {
    if (!run.starts_with(kSetUp) || run == but) continue;
    for (const std::string& machine : list_folder(runs + "/" + run)) {
      if (!machine.starts_with("machine")) continue;
      const std::string state = runs + "/" + run + "/" + machine;
      const JobFiles job = read_job_files(state);
      // The session outlasts its script by a moment.
      const bool has_ended = exists(state + "/exit_code");
      if (!has_ended && job.leader && find_leader(*job.leader)) return run + "/" + machine;
    }
  }
  return {};
}

StartReply start_job(const StartRequest& request) {
  try {
    return start(request);
  } catch (const std::exception& error) {
    return {error.what(), "", ""};
  }
}

std::string name_of(Holder holder) {
  switch (holder) {
    case Holder::screen:
      return "screen";
    case Holder::tmux:
      return "tmux";
    case Holder::none:
      return "none";
  }
  return "none";
}

std::vector<Holder> find_holders() {
  std::vector<Holder> holders;
  for (const Holder each : {Holder::screen, Holder::tmux})
    if (is_program(name_of(each))) holders.push_back(each);
  holders.push_back(Holder::none);
  return holders;
}

std::string hold_session(Holder holder, const std::string& session, const std::string& state,
                         const std::string& log) {
  if (holder == Holder::none)
    return start_detached({own_path(), "session", log}, state, Descriptor());
  std::vector<std::string> words;
  if (holder == Holder::screen) {
    words = {"screen", "-dmS", session, own_path(), "session", log};
  } else {
    // The job has its own server, with a socket in the state folder: it never meets the user's
    // sessions, and ends with the job. Its keys are screen's, so that users who attach need not
    // know which of the two it is.
    ::unsetenv("TMUX");
    words = {"tmux", "-S",     "tmux",     "-f",      "/dev/null",  "new-session", "-d",
             "-s",   "job",    own_path(), "session", log,          ";",           "set-option",
             "-g",   "status", "off",      ";",       "set-option", "-g",          "prefix",
             "C-a",  ";",      "bind-key", "a",       "send-prefix"};
  }
  const ChildResult held = run_program(words, std::chrono::seconds(20), state);
  if (held.ok()) return {};
  const std::string fault = words[0] + " did not start: " + as_line(held.out + held.err);
  // It may still begin the session.
  if (held.timed_out) throw std::runtime_error(fault + " (in 20 s)");
  return fault;
}

}  // namespace dtool::host
