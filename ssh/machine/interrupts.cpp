// SPDX-License-Identifier: MIT
#include "ssh/machine/interrupts.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "ssh/machine/interrupt_listener.h"

namespace dtool::ssh {
namespace {

/// One that has heard it, and is about to unwind and to say what it leaves, is given more time.
constexpr int kSecondsToHear = 1;
constexpr int kSecondsToHearAStop = 3;  // a first Ctrl-C is less urgent
constexpr int kSecondsToEnd = 2;
constexpr auto kChildrensGrace = std::chrono::milliseconds(600);
constexpr std::size_t kMostChildren = 4096;

// Data of the signal handlers: nothing here takes a lock or allocates memory.
std::atomic<int> stops = 0;
std::atomic<int> leaves = 0;
std::atomic<int> last_signal = SIGTERM;
std::atomic<bool> is_stop_heard = false;
std::atomic<bool> is_heard = false;
std::atomic<bool> has_more_time = false;
std::atomic<int> listeners = 0;
std::atomic<int> questions = 0;
std::atomic<int> bell = -1;
std::array<std::atomic<pid_t>, kMostChildren> children{};
std::atomic<const termios*> terminal_settings = nullptr;
std::atomic<const char*> terminal_text = nullptr;
std::atomic<int> terminal_fd = -1;

/// Not the terminal as it is open already: a write to one that was stopped would wait.
void give_terminal_back() {
  const int fd = terminal_fd;
  if (fd < 0) return;
  if (const termios* settings = terminal_settings) ::tcsetattr(fd, TCSANOW, settings);
  const char* text = terminal_text;
  if (text == nullptr) return;
  const int anew = ::open("/dev/tty", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  [[maybe_unused]] const auto written = ::write(anew, text, std::strlen(text));
}

/// By that signal, so that a shell's loop ends as well.
[[noreturn]] void end_now(int number) {
  for (std::atomic<pid_t>& child : children) {
    const pid_t pid = child;
    if (pid != 0) ::kill(pid, SIGKILL);
  }
  give_terminal_back();
  ::signal(number, SIG_DFL);
  sigset_t mask;
  ::sigemptyset(&mask);
  ::sigaddset(&mask, number);
  ::raise(number);
  ::sigprocmask(SIG_UNBLOCK, &mask, nullptr);
  ::_exit(128 + number);
}

void set_alarm(int seconds) {
  const itimerval timer{{0, 0}, {seconds, 0}};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

void on_signal(int number) {
  const int error = errno;
  last_signal = number;
  if (listeners == 0 || questions > 0) end_now(number);
  const bool is_first = number == SIGINT && stops++ == 0;
  if (is_first) {
    set_alarm(kSecondsToHearAStop);
  } else if (leaves++ == 0) {
    set_alarm(kSecondsToHear);
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(bell, &one, sizeof one);
  errno = error;
}

void on_alarm(int) {
  if (leaves == 0 && is_stop_heard) return;
  if (!is_heard || has_more_time.exchange(true)) end_now(last_signal);
  set_alarm(kSecondsToEnd);
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigfillset(&action.sa_mask);  // SIGTTOU among them, when the terminal is given back
  ::sigaction(number, &action, nullptr);
}

}  // namespace

void watch_interrupts() {
  bell = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  handle(SIGALRM, on_alarm);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    ::sigaction(number, nullptr, &before);
    // nohup means it; that a script's shell has what it starts with & ignore Ctrl-C does not mean
    // that who sends INT to this one is not heard.
    if (number != SIGHUP || before.sa_handler != SIG_IGN) handle(number, on_signal);
  }
}

bool is_to_leave() {
  return leaves > 0;
}

void forget_interrupts() {
  set_alarm(0);
  stops = 0;
  leaves = 0;
  is_stop_heard = false;
  is_heard = false;
  has_more_time = false;
}

Interrupts::Interrupts(Reactor& reactor, std::function<void(Asked)> on_asked)
    : on_asked_(std::move(on_asked)),
      descriptor_(reactor.context()),
      stops_heard_(is_stop_heard ? stops.load() : 0),
      leaves_heard_(leaves) {
  if (bell < 0) watch_interrupts();  // this is so in unit tests
  ++listeners;
  descriptor_.assign(::fcntl(bell, F_DUPFD_CLOEXEC, 0));
  listen();
}

Interrupts::~Interrupts() {
  cancel();
}

void Interrupts::cancel() {
  if (!std::exchange(is_listening_, false)) return;
  --listeners;
  boost::system::error_code ignored;
  descriptor_.close(ignored);
}

void Interrupts::listen() {
  descriptor_.async_wait(asio::posix::stream_descriptor::wait_read,
                         [this](boost::system::error_code error) {
                           if (error) return;
                           std::uint64_t rings = 0;
                           [[maybe_unused]] const auto count =
                               ::read(descriptor_.native_handle(), &rings, sizeof rings);
                           hear();
                           listen();
                         });
}

void Interrupts::hear() {
  const int stopped = stops;
  const int left = leaves;
  const bool is_to_stop = std::exchange(stops_heard_, stopped) != stopped;
  const bool is_to_leave = std::exchange(leaves_heard_, left) != left;
  if (is_to_stop) {
    is_stop_heard = true;
    on_asked_(Asked::to_stop);
  }
  if (!is_to_leave) return;
  on_asked_(Asked::to_leave);
  is_heard = true;
}

EndsAtOnce::EndsAtOnce() {
  ++questions;
  if (stops > 0 || leaves > 0) ::raise(last_signal);  // it came before the question
}

EndsAtOnce::~EndsAtOnce() {
  --questions;
}

EndsWithUs::EndsWithUs(pid_t pid) {
  for (std::size_t i = 0; i < children.size() && pid != 0; ++i) {
    pid_t none = 0;
    if (!children[i].compare_exchange_strong(none, pid)) continue;
    place_ = static_cast<int>(i);
    return;
  }
}

EndsWithUs::EndsWithUs(EndsWithUs&& other) noexcept : place_(std::exchange(other.place_, -1)) {}

EndsWithUs& EndsWithUs::operator=(EndsWithUs&& other) noexcept {
  std::swap(place_, other.place_);
  return *this;
}

EndsWithUs::~EndsWithUs() {
  if (place_ >= 0) children[static_cast<std::size_t>(place_)] = 0;
}

namespace {

Deadline children_told_at = kNoDeadline;

}  // namespace

void tell_children_to_end() {
  if (children_told_at == kNoDeadline) children_told_at = Clock::now();
  for (std::atomic<pid_t>& child : children) {
    const pid_t pid = child;
    if (pid != 0) ::kill(pid, SIGTERM);
  }
}

Deadline end_of_childrens_grace() {
  const Deadline usual = after(std::chrono::seconds(1));
  if (children_told_at == kNoDeadline) return usual;
  return std::min(usual, children_told_at + kChildrensGrace);
}

void leave_terminal_with(int fd, const termios* settings, const char* text) {
  terminal_fd = -1;
  terminal_settings = settings;
  terminal_text = text;
  terminal_fd = fd;
}

}  // namespace dtool::ssh
