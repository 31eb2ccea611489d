// SPDX-License-Identifier: MIT
#include "cli/watch/watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/watch/record_end.h"
#include "cli/watch/run_status.h"
#include "cli/watch/status_table.h"
#include "ssh/machine/interrupts.h"

namespace dtool::cli {

namespace {

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
    if (machine.status->state == MachineState::unreachable ||
        machine.status->state == MachineState::unproven) {
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
    if (left.count() <= 0 || wait(left) != Woken::resized) return;
    if (watch.redraws()) watch.show();
  }
}

}  // namespace

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

namespace {

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

}  // namespace

Woken wait(std::chrono::milliseconds duration) {
  was_resized = 0;
  const int ready = ::poll(nullptr, 0, static_cast<int>(duration.count()));
  if (ready == 0) return Woken::time_passed;
  return was_resized != 0 ? Woken::resized : Woken::signalled;
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

}  // namespace dtool::cli
