// SPDX-License-Identifier: MIT
// `dtool status`: a row for each machine of a recorded run, and the cause if the run failed. With
// --watch again and again until the run has ended.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/action.h"
#include "cli/host_options.h"
#include "cli/options.h"
#include "cli/record/recorded.h"
#include "cli/watch/record_end.h"
#include "cli/watch/run_status.h"
#include "cli/watch/status_answer.h"
#include "cli/watch/status_table.h"
#include "ssh/machine/interrupts.h"

namespace dtool::cli {
namespace {

// Uses the whole terminal for a while, for `status --watch`.

/// Sleeps; a signal ends it. Returns whether the window has another size now.
bool was_resized_within(std::chrono::milliseconds duration);

/// The alternate screen of the terminal on standard output, while it lives; one at a time. Typed
/// keys are not shown. The terminal itself turns `q` into an interrupt signal, so it works whatever
/// dtool is waiting for.
class FullScreen {
 public:
  explicit FullScreen(Console& console);
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  /// Whether standard output is a terminal that supports this.
  static bool is_possible();

  TerminalSize size() const;

  /// Replaces the content. Lines must fit size().
  void draw(const std::vector<std::string>& lines);

  /// Whether the interrupt was a `q`.
  bool quit() const;

 private:
  Console& console_;
  std::optional<termios> before_;
};

volatile sig_atomic_t was_resized = 0;
volatile sig_atomic_t has_quit = 0;

void on_resize(int) {
  was_resized = 1;
}

/// Passes the key on as an interrupt, which all waits for hosts understand.
void on_quit(int) {
  has_quit = 1;
  ::raise(SIGINT);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(signal, &action, nullptr);
}

constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J";
constexpr const char* kLeave = "\x1b[?25h\x1b[?1049l";

bool was_resized_within(std::chrono::milliseconds duration) {
  was_resized = 0;
  return ::poll(nullptr, 0, static_cast<int>(duration.count())) != 0 && was_resized != 0;
}

bool FullScreen::is_possible() {
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

FullScreen::FullScreen(Console& console) : console_(console) {
  has_quit = 0;
  handle(SIGWINCH, on_resize);
  handle(SIGQUIT, on_quit);
  termios now{};
  if (::tcgetattr(STDOUT_FILENO, &now) == 0) {
    before_ = now;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    now.c_cc[VQUIT] = 'q';
    now.c_cc[VSUSP] = _POSIX_VDISABLE;  // stopped, it would leave its screen behind
    ssh::leave_terminal_with(STDOUT_FILENO, &*before_, kLeave);
    ::tcsetattr(STDOUT_FILENO, TCSADRAIN, &now);
  }
  console_.steer(To::out, kEnter);
}

FullScreen::~FullScreen() {
  try {
    console_.steer(To::out, kLeave);
  } catch (const OutputLost&) {
    // The terminal is gone, and nothing is left to put right.
  }
  if (before_) ::tcsetattr(STDOUT_FILENO, TCSAFLUSH, &*before_);
  ssh::leave_terminal_with(-1, nullptr, nullptr);
  handle(SIGWINCH, SIG_DFL);
  handle(SIGQUIT, SIG_DFL);
}

TerminalSize FullScreen::size() const {
  return terminal_size(STDOUT_FILENO);
}

void FullScreen::draw(const std::vector<std::string>& lines) {
  const auto most = static_cast<std::ptrdiff_t>(std::min(lines.size(), size().rows));
  console_.draw({lines.begin(), lines.begin() + most});
}

bool FullScreen::quit() const {
  return has_quit != 0;
}

using Clock = std::chrono::steady_clock;

/// A host that did not answer is asked again after a pause that doubles, so that waiting for it
/// does not hold back the others' rows each time.
constexpr std::chrono::seconds kFirstPause{5};
constexpr std::chrono::seconds kLongestPause{60};

/// The others' rows wait for a host no longer than this.
constexpr std::chrono::seconds kRoundPatience{10};

constexpr std::chrono::milliseconds kBetweenDrawings{200};

struct Machine {
  std::optional<MachineStatus> status;  ///< absent: not answered yet
  Clock::time_point ask_at{};
  std::chrono::seconds pause = kFirstPause;
};

class Watch {
 public:
  Watch(Console& console, const killfiles::Killfile& killfile)
      : console_(console), killfile_(killfile), machines_(killfile.machines.size()) {
    if (FullScreen::is_possible()) screen_.emplace(console);
  }

  void take(std::size_t place, const ssh::HostResult& result, const MachineStatus& status) {
    // If the user leaves in the middle of a round, the machines' answers of the round before count.
    if (result.failure == ssh::Failure::not_started || (quit() && !result.ok())) return;
    Machine& machine = machines_[place];
    machine.status = status;
    if (machine.status->is_silent()) {
      machine.ask_at = Clock::now() + machine.pause;
      machine.pause = std::min(machine.pause * 2, kLongestPause);
    } else {
      machine.ask_at = {};
      machine.pause = kFirstPause;
    }
    if (screen_ && Clock::now() - drawn_at_ > kBetweenDrawings) draw();
  }

  /// The machines to ask now; all of them if none is due, since interrupts are only noticed while
  /// asking.
  std::vector<std::size_t> due() const {
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < machines_.size(); ++i) {
      if (machines_[i].ask_at <= Clock::now()) which.push_back(i);
    }
    return which.empty() ? all_machines(killfile_) : which;
  }

  /// Those that have answered or failed to.
  std::vector<MachineStatus> known() const {
    std::vector<MachineStatus> all;
    for (const Machine& each : machines_) {
      if (each.status) all.push_back(*each.status);
    }
    return all;
  }

  void show() {
    if (screen_) {
      draw();
    } else {
      print();
      console_.say("");
    }
  }

  /// As without --watch.
  void print() {
    const auto machines = known();
    for (const std::string& line : headlines(console_, killfile_, machines, 0)) console_.say(line);
    for (const std::string& line : table(console_, machines, {0, kReadableRows}))
      console_.say(line);
  }

  bool redraws() const { return screen_.has_value(); }
  bool quit() const { return screen_ && screen_->quit(); }
  void leave_screen() { screen_.reset(); }

 private:
  void draw() {
    drawn_at_ = Clock::now();
    const TerminalSize size = screen_->size();
    const auto machines = known();
    std::vector<std::string> lines = headlines(console_, killfile_, machines, size.columns);
    const std::size_t silent = machines_.size() - machines.size();
    if (silent > 0) lines.push_back(cut(fmt::format("asking {} hosts", silent), size.columns));
    lines.emplace_back();
    const std::size_t left = size.rows > lines.size() + 2 ? size.rows - lines.size() - 2 : 1;
    for (std::string& line : table(console_, machines, {size.columns, left}))
      lines.push_back(std::move(line));
    while (lines.size() + 1 < size.rows) lines.emplace_back();
    if (lines.size() < size.rows)
      lines.push_back(console_.styled(Style::dim, cut("q: leave, the run goes on", size.columns)));
    screen_->draw(lines);
  }

  Console& console_;
  const killfiles::Killfile& killfile_;
  std::vector<Machine> machines_;
  std::optional<FullScreen> screen_;
  Clock::time_point drawn_at_{};
};

/// Until the time has passed or a signal came that is not about the window's size.
void pause(Watch& watch, std::chrono::milliseconds interval) {
  const auto end = Clock::now() + interval;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0 || !was_resized_within(left)) return;
    if (watch.redraws()) watch.show();
  }
}

/// Redraws in place on a terminal; elsewhere prints a block per round. Pauses for `interval`
/// between rounds and keeps the connections. Ends with the run, by `q` (on a terminal) and by
/// Ctrl-C. Returns dtool's exit code.
int watch(Console& console, ssh::Remote& remote, const killfiles::Killfile& killfile,
          std::chrono::milliseconds interval) {
  Watch watched(console, killfile);
  const auto take = [&watched](std::size_t place, const ssh::HostResult& result,
                               const MachineStatus& status) {
    watched.take(place, result, status);
  };
  while (true) {
    ask_machines(remote, killfile, watched.due(), take, kRoundPatience, ssh::Follows::more);
    if (remote.interrupted()) break;
    if (has_ended(watched.known())) {
      watched.leave_screen();
      watched.print();
      note_end(console, killfile.run_id, watched.known());
      return exit_code_of(watched.known());
    }
    watched.show();
    pause(watched, interval);
  }
  return watched.quit() ? exit_code_of(watched.known()) : kInterrupted;
}

nlohmann::json document_of(const killfiles::Killfile& killfile,
                           const std::vector<MachineStatus>& machines) {
  nlohmann::json document = to_json(killfile);
  document.update({{"state", std::string(state_of_run(machines))},
                   {"exit_code", exit_code_of(machines)},
                   {"attempt", attempt_of(machines)},
                   {"coordinator", killfile.coordinator},
                   {"machines", nlohmann::json::array()}});
  for (const MachineStatus& each : machines) document["machines"].push_back(to_json(each));
  if (const auto cause = cause_of(machines)) {
    document["cause"] = cause->text;
    document["last_lines"] = cause->lines;
  }
  if (const auto failure = earlier_failure_of(machines))
    document["earlier_failure"] = {{"attempt", failure->attempt}, {"cause", failure->text}};
  if (const auto progress = progress_of(machines)) document["progress"] = to_json(*progress);
  return document;
}

class StatusAction : public Action {
 public:
  void add_options(Options& command) override {
    command.add_option("RUN", runs_, "run ids or parts of them; last, last-1 (the newest run)");
    command.add_flag("--watch", watch_, "repeat until the run ends; on a terminal in place");
    command.add_option("--interval", interval_, "seconds between two rounds of --watch (2)")
        .check(must_be_seconds)
        .check(must_be_from(0.1, 3600.0));
    command.add_flag("--each", each_, "a row for each machine, even if there are many");
    add_connect_options(command, hosts_);
  }

  int run(Invocation& invocation) override {
    Console& console = invocation.console;
    if (interval_ > 0 && !watch_)
      throw UsageError("--interval is the pause of --watch", "give --watch as well");
    if (watch_ && console.json())
      throw UsageError("--watch with --json would be many documents",
                       "call dtool status --json again and again");
    if (watch_ && each_)
      throw UsageError("--each is for one look, and --watch shows what fits the screen",
                       "leave one of them out");
    if (watch_ && runs_.size() > 1) throw UsageError("--watch shows one run", "name one");
    std::vector<std::string> names = runs_;
    if (names.empty()) names.emplace_back();
    if (names.size() > 1)
      for (const std::string& each : names)
        recorded_run(each);  // a mistake is told before the rest
    int exit_code = kAllWell;
    for (std::size_t i = 0; i < names.size() && exit_code != kInterrupted; ++i)
      exit_code = std::max(exit_code, look_at(invocation, names[i]));
    if (console.json() && exit_code != kInterrupted)
      console.document(names.size() == 1 ? documents_[0] : nlohmann::json{{"runs", documents_}});
    return exit_code;
  }

 private:
  void show(Console& console, const killfiles::Killfile& killfile,
            const std::vector<MachineStatus>& machines) const {
    for (const std::string& line : headlines(console, killfile, machines, 0)) console.say(line);
    const std::size_t columns =
        console.is_terminal(To::out) ? terminal_size(STDOUT_FILENO).columns : 0;
    const Room room{columns, each_ ? 0 : kReadableRows};
    for (const std::string& line : table(console, machines, room)) console.say(line);
  }

  int look_at(Invocation& invocation, const std::string& name) {
    Console& console = invocation.console;
    const killfiles::Killfile killfile = recorded_run(name);
    if (name.empty()) console.note(fmt::format("the newest run is {}", killfile.run_id));
    const Targets targets = recorded_targets(killfile, hosts_, invocation.settings.users());
    const auto remote = invocation.reach(targets.hosts, targets.connect);
    if (watch_) {
      constexpr double kDefaultInterval = 2;
      const double seconds = interval_ > 0 ? interval_ : kDefaultInterval;
      return watch(console, *remote, killfile, from_seconds(seconds));
    }
    std::size_t answered = 0;
    const auto count = [&](std::size_t, const ssh::HostResult&, const MachineStatus&) {
      console.progress(
          fmt::format("answered: {} of {} machines", ++answered, killfile.machines.size()));
    };
    constexpr std::chrono::seconds kLongestAnswer{20};
    const auto machines =
        ask_machines(*remote, killfile, all_machines(killfile), count, kLongestAnswer);
    console.progress("");
    if (remote->interrupted()) return kInterrupted;
    note_end(console, killfile.run_id, machines);
    if (console.json()) {
      documents_.push_back(document_of(killfile, machines));
    } else {
      show(console, killfile, machines);
    }
    return exit_code_of(machines);
  }

  HostOptions hosts_;
  std::vector<std::string> runs_;
  nlohmann::json documents_ = nlohmann::json::array();
  bool watch_ = false;
  bool each_ = false;
  double interval_ = 0;  ///< seconds; 0: not given
};

}  // namespace

std::unique_ptr<Action> make_status() {
  return std::make_unique<StatusAction>();
}

}  // namespace dtool::cli
