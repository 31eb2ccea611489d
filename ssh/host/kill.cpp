// SPDX-License-Identifier: MIT
#include "ssh/host/kill.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/members.h"
#include "ssh/host/process_table.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kBetweenLooks{100};
constexpr milliseconds kForTerminals{500};  // the time for what holds the terminals, after TERM
// The time for processes of another user, which go with a parent.
constexpr milliseconds kForOthers{1000};
constexpr int kMostStrikes = 10;
constexpr int kCalmLooks = 3;
// The most tries to look: memory or descriptors may be short for a moment.
constexpr int kTries = 3;
constexpr std::size_t kLongestCommand = 200;

/// A screen session of the run: its process, and its name as screen tells it, `PID.NAME`.
struct Screen {
  pid_t pid = 0;
  std::string name;
};

std::vector<Screen> find_screens(const std::vector<std::string>& sessions) {
  std::vector<Screen> screens;
  for (const std::string& session : sessions) {
    // It takes any name that begins alike, and exits with 1 where it shows some.
    const ChildResult listed = run_program({"screen", "-ls", session}, std::chrono::seconds(20));
    if (listed.is_missing) return {};
    if (listed.timed_out) throw std::runtime_error("screen -ls does not answer");
    for (std::string_view rest = listed.out; !rest.empty();) {
      std::string_view line = cut_line(rest);
      const std::string_view word = cut_word(line);
      const std::size_t dot = word.find('.');
      if (dot == word.npos || word.substr(dot + 1) != session) continue;
      const auto pid = parse_number<pid_t>(word.substr(0, dot));
      if (pid && *pid > 1) screens.push_back({*pid, std::string(word)});
    }
  }
  return screens;
}

/// One end of a run: what is looked for, and what was found.
class Ending {
 public:
  Ending(std::string run_id, std::vector<std::string> sessions, milliseconds grace)
      : sessions_(std::move(sessions)), grace_(grace), finder_({std::move(run_id), {}, {}, {}}) {}

  void add_job(const JobFiles& job);
  void spare(const std::set<pid_t>& pids) { finder_.traces().spared = pids; }
  void go(KillReply& reply);

 private:
  using Group = std::vector<Member> Ending::*;

  enum class Do { look, strike };
  void look(Do what = Do::look);
  void send(int signal, const std::vector<Member>& members);
  void wait_for_end(Group whom, milliseconds limit);
  void strike();
  void end_members(KillReply& reply);
  void find_screens_again();
  bool finds_screens_again();
  void quit_screens();
  void report(KillReply& reply) const;

  std::vector<std::string> sessions_;
  milliseconds grace_;
  MemberFinder finder_;
  std::vector<Screen> screens_;
  std::set<pid_t> holders_;      ///< they hold the jobs' terminals: they go last
  std::vector<Member> working_;  ///< the members that live, without the holders
  std::vector<Member> holding_;
  std::vector<Member> living_;  ///< both
  /// The members of another user, which only that user or root can end.
  std::vector<Member> of_others_;
  std::vector<pid_t> callers_;  ///< members that this process descends from
  bool was_restless_ = false;   ///< a member ended at some look before it could be met
  bool is_restless_ = false;    ///< a member ended at the last look before it could be met
  bool is_unsettled_ = false;   ///< the run stayed restless to the end
};

void Ending::add_job(const JobFiles& job) {
  if (!job.leader) return;
  add_leader(*job.leader, finder_.traces());
  const auto process = find_leader(*job.leader);
  if (!process) return;
  holders_.insert(process->pid);
  if (job.holder == "tmux" || job.holder == "screen") holders_.insert(process->parent);
}

void Ending::look(Do what) {
  std::optional<Members> members;
  for (int tries = 1; !members; ++tries) {
    try {
      members = what == Do::strike ? finder_.strike() : finder_.look();
    } catch (const std::exception&) {
      if (tries == kTries) throw;
      pause(kBetweenLooks);
    }
  }
  working_.clear();
  holding_.clear();
  of_others_.clear();
  for (const Member& each : members->living) {
    const bool is_anothers = each.user != ::geteuid() && ::geteuid() != 0;
    (is_anothers ? of_others_ : holders_.contains(each.pid) ? holding_ : working_).push_back(each);
  }
  living_ = working_;
  living_.insert(living_.end(), holding_.begin(), holding_.end());
  callers_ = members->callers;
  is_restless_ = members->ended_meanwhile;
  was_restless_ = was_restless_ || is_restless_;
}

void Ending::send(int signal, const std::vector<Member>& members) {
  for (const Member& each : members) send_to(each, signal);
}

void Ending::wait_for_end(Group whom, milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  while (!(this->*whom).empty() && Clock::now() < end) {
    pause(std::min(kBetweenLooks, limit));
    look();
  }
}

void Ending::find_screens_again() {
  try {
    screens_ = find_screens(sessions_);
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string("the host's processes cannot be looked at: ") +
                             error.what());
  }
  for (const Screen& each : screens_) {
    holders_.insert(each.pid);
    finder_.traces().seeds.insert(each.pid);
  }
}

/// Where the run has taken the last process that its user may have, no program can be asked.
bool Ending::finds_screens_again() {
  try {
    find_screens_again();
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

void Ending::quit_screens() {
  if (!finds_screens_again()) return;
  for (const Screen& each : screens_) {
    if (std::ranges::find(callers_, each.pid) != callers_.end()) continue;
    try_program({"screen", "-S", each.name, "-X", "quit"}, std::chrono::seconds(20));
  }
}

void Ending::report(KillReply& reply) const {
  reply.ended = static_cast<std::int64_t>(finder_.count_seen()) -
                static_cast<std::int64_t>(living_.size() + of_others_.size());
  const auto describe = [](pid_t pid) {
    return std::to_string(pid) + " " + command_of(pid, kLongestCommand);
  };
  for (const Member& each : living_) {
    const auto process = find_process(each.pid);
    const bool waits = process && process->state == 'D';
    reply.left.push_back(describe(each.pid) +
                         (waits ? " (in state D: it ends when a disk or a driver answers)"
                                : " (SIGKILL has not ended it yet)"));
  }
  for (const Member& each : of_others_)
    reply.left.push_back(describe(each.pid) +
                         " (another user's, which only that user or root can end)");
  if (is_unsettled_ && living_.empty())
    reply.left.push_back("processes that begin and end faster than they can be met");
  // Where the run's own session ends the rest of the run, it stays by intent.
  if (!callers_.empty() && finder_.traces().spared.empty())
    reply.left.push_back(describe(callers_.back()) +
                         " (it has called this very dtool kill, which is part of the run: call it "
                         "from elsewhere)");
}

void Ending::strike() {
  Strikes strikes;
  while (strikes.are_due(!living_.empty(), was_restless_)) {
    send(SIGKILL, living_);
    look(Do::strike);
    wait_for_end(&Ending::living_, kForTerminals);
    strikes.add(living_.empty() && !is_restless_);
  }
  is_unsettled_ = was_restless_ && !strikes.have_calmed();
}

void Ending::end_members(KillReply& reply) {
  if (living_.empty() && !was_restless_) return;
  // Screens and session leaders come last: with one of them the terminal goes, and a program that
  // handles TERM would get a HUP in the middle of its last work.
  send(SIGTERM, working_);
  wait_for_end(&Ending::working_, grace_);
  send(SIGTERM, holding_);
  wait_for_end(&Ending::holding_, kForTerminals);
  quit_screens();
  look();
  reply.forced += static_cast<std::int64_t>(living_.size());
  strike();
  if (!sessions_.empty()) try_program({"screen", "-wipe"}, std::chrono::seconds(20));
}

void Ending::go(KillReply& reply) {
  const bool knows_screens = finds_screens_again();
  look();
  end_members(reply);
  if (!knows_screens) {
    find_screens_again();
    look();
    end_members(reply);
  }
  wait_for_end(&Ending::of_others_, kForOthers);
  report(reply);
}

/// Puts kill's mark into a state folder, under the lock that a start takes.
void mark(const std::string& folder, milliseconds grace, KillReply& reply) {
  // The run's folder was made when the host was looked at, before the run was recorded. Where it is
  // there and the machine's own is not, nothing was started, and the mark sees to it that nothing
  // will be. Where it is missing, nothing starts any more, and what was started cannot be known: no
  // folder is made that would look as if it could.
  if (!is_folder(folder_of(folder))) {
    reply.no_folder = folder_of(folder);
    return;
  }
  make_folder(folder);  // a start may make it meanwhile
  const Descriptor lock = lock_file(folder + "/lock", 30'000);
  // That start has already looked for the mark. If the lock cannot be opened, no start gets so far.
  if (!lock.is_open() && errno == EWOULDBLOCK) reply.locked = folder;
  // How many seconds this may take, for the run's own session, which stands still meanwhile.
  const auto seconds = grace.count() / 1000 + 90;
  write_in_place(folder + "/killed", std::to_string(seconds) + "\n");
  // On a full disk it is empty, and serves as well.
  if (!exists(folder + "/killed")) reply.unmarked = folder;
}

/// Has the scheduler that runs a job end it: its launcher left the way there.
void end_by_scheduler(const std::string& folder, const std::string& run_id, KillReply& reply) {
  if (!exists(folder + "/end")) return;
  const std::string script = std::string(kAnswerFunction) + "run_id=$1; . ./end";
  const ChildResult ended =
      try_program({"bash", "-c", script, "dtool", run_id}, std::chrono::seconds(100), folder);
  for (const auto& [name, value] : read_pairs(ended.out)) {
    if (name == "cancelled") reply.cancelled = value;
    if (name == "job_left") reply.job_left = value;
    if (name == "vouched_for") reply.vouched_for = value;
  }
  if (!ended.fault.empty()) reply.job_left = ended.fault;
  if (ended.is_missing) reply.job_left = "bash is not installed";
  if (ended.timed_out) reply.job_left = "its commands do not answer";
}

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), ::free);
  return real == nullptr ? "" : real.get();
}

/// Real paths of the run's folder, with its own tree, and of its logs.
std::vector<std::string> places_of(const std::vector<std::string>& state_folders) {
  std::vector<std::string> places;
  for (const std::string& each : state_folders) {
    places.push_back(real_path(folder_of(each)));
    const std::string log = real_path(each + "/log");
    places.push_back(log);
    constexpr std::string_view kEnd = ".log";
    if (log.ends_with(kEnd)) places.push_back(log.substr(0, log.size() - kEnd.size()) + ".ranks");
  }
  return places;
}

}  // namespace

bool Strikes::are_due(bool any_lives, bool was_restless) const {
  return count_ < kMostStrikes && !have_calmed() && (any_lives || was_restless);
}

void Strikes::add(bool is_calm) {
  ++count_;
  calm_ = is_calm ? calm_ + 1 : 0;
}

bool Strikes::have_calmed() const {
  return calm_ >= kCalmLooks;
}

KillReply kill_run(const KillRequest& request) {
  KillReply reply;
  reply.host = identify_host();
  const milliseconds grace(request.grace_ms);
  std::vector<std::string> folders;
  for (const std::string& each : request.state_folders) folders.push_back(expand_home(each));
  for (const std::string& folder : folders) mark(folder, grace, reply);
  for (const std::string& folder : folders) end_by_scheduler(folder, request.run_id, reply);

  Ending ending(request.run_id, request.sessions, grace);
  std::optional<std::uint64_t> began;
  for (const std::string& folder : folders) {
    const JobFiles job = read_job_files(folder);
    ending.add_job(job);
    if (!job.leader || job.leader->boot == Boot::earlier) continue;
    if (!began || job.leader->start < *began) began = job.leader->start;
  }
  ending.go(reply);
  if (began) reply.unseen = find_unseen(request.run_id, *began, places_of(folders));
  return reply;
}

KillReply end_processes(const std::string& run_id, milliseconds grace,
                        const std::set<pid_t>& spared) {
  KillReply reply;
  Ending ending(run_id, {}, grace);
  ending.spare(spared);
  ending.go(reply);
  return reply;
}

}  // namespace dtool::host
