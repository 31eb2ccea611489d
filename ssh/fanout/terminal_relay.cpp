// SPDX-License-Identifier: MIT
#include "ssh/fanout/terminal_relay.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "ssh/host_error.h"
#include "ssh/machine/fd_bytes.h"

namespace dtool::ssh {
namespace {

constexpr char kInterruptKey = '\x03';
/// For this long a second Ctrl-c counts as meant, and the notice is drawn again.
constexpr std::chrono::seconds kMeant{5};
/// Output that pauses for this long has not stopped inside a control sequence.
constexpr std::chrono::milliseconds kQuiet{30};
/// For this long an ended command's last output is waited for.
constexpr std::chrono::milliseconds kLastOutput{200};

OwnedFd open_inner(const char* name) {
  OwnedFd opened(::open(name, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  if (opened) return opened;
  throw HostError(Failure::local_program,
                  fmt::format("cannot open a terminal of this machine: {}", std::strerror(errno)));
}

OwnedFd open_master() {
  OwnedFd master = open_inner("/dev/ptmx");
  ::grantpt(master.get());
  ::unlockpt(master.get());
  return master;
}

}  // namespace

TerminalRelay::TerminalRelay(Reactor& reactor, const Terminal& outer)
    : reactor_(reactor),
      outer_(outer),
      keys_(open_master()),
      output_(::fcntl(keys_.get(), F_DUPFD_CLOEXEC, 0)),
      inner_in_(open_inner(::ptsname(keys_.get()))),
      inner_out_(open_inner(::ptsname(keys_.get()))),
      key_waiter_(reactor, outer.in),
      output_waiter_(reactor, output_.get()) {
  termios raw{};
  if (::tcgetattr(outer_.in, &raw) == 0) ::tcsetattr(inner_in_.get(), TCSANOW, &raw);
  resize();
}

Terminal TerminalRelay::inner() const {
  return {inner_in_.get(), inner_out_.get(), outer_.type, {}};
}

void TerminalRelay::resize() {
  winsize size{};
  if (::ioctl(outer_.out, TIOCGWINSZ, &size) == 0) ::ioctl(keys_.get(), TIOCSWINSZ, &size);
}

/// Removes a Ctrl-c that follows no other one within kMeant, and has the notice drawn.
void TerminalRelay::take_interrupts(std::string& keys) {
  const auto is_first = [this](char key) {
    if (key != kInterruptKey || outer_.on_interrupt.empty()) return false;
    const bool passes = Clock::now() < passes_until_;
    passes_until_ = passes ? Deadline{} : after(kMeant);
    return !passes;
  };
  if (std::erase_if(keys, is_first) == 0) return;
  shown_until_ = after(kMeant);
  is_to_be_drawn_ = true;
  output_waiter_.wake();
}

asio::awaitable<void> TerminalRelay::pass_keys() {
  std::array<char, 4096> bytes;
  while (!is_over_) {
    const ssize_t count = ::read(outer_.in, bytes.data(), bytes.size());
    if (count > 0) {
      std::string keys(bytes.data(), static_cast<std::size_t>(count));
      take_interrupts(keys);
      co_await write_all(reactor_, keys_.get(), keys, kNoDeadline);
    } else if (count < 0 && errno == EAGAIN) {
      co_await key_waiter_.wait(Waiter::For::readable, kNoDeadline);
    } else if (count == 0 || errno != EINTR) {
      co_return;
    }
  }
}

/// In the last columns of the first line, which scrolls away first; the cursor stays where it is.
std::string TerminalRelay::notice() const {
  winsize size{};
  ::ioctl(outer_.out, TIOCGWINSZ, &size);
  const std::string text = (" " + outer_.on_interrupt + " ").substr(0, size.ws_col);
  return fmt::format(
      "\x1b"
      "7\x1b[1;{}H\x1b[7m{}\x1b[0m\x1b"
      "8",
      size.ws_col - text.size() + 1, text);
}

asio::awaitable<void> TerminalRelay::pass_output() {
  std::array<char, 65536> bytes;
  while (true) {
    const ssize_t count = ::read(output_.get(), bytes.data(), bytes.size());
    if (count > 0) {
      const std::string_view view(bytes.data(), static_cast<std::size_t>(count));
      co_await write_all(reactor_, outer_.out, view, kNoDeadline);
      if (!std::exchange(has_output_, true)) shown_until_ = after(kMeant);
      is_to_be_drawn_ = Clock::now() < shown_until_ && !outer_.on_interrupt.empty();
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count == 0 || errno != EAGAIN) co_return;
    const Deadline deadline = is_over_          ? after(kLastOutput)
                              : is_to_be_drawn_ ? after(kQuiet)
                                                : kNoDeadline;
    const auto outcome = co_await output_waiter_.wait(Waiter::For::readable, deadline);
    if (outcome != Waiter::Outcome::deadline_passed) continue;
    if (is_over_) co_return;
    co_await write_all(reactor_, outer_.out, notice(), kNoDeadline);
    is_to_be_drawn_ = false;
  }
}

/// Once the command's end of the terminal is closed, reading it ends after the last byte.
void TerminalRelay::stop() {
  is_over_ = true;
  inner_in_.reset();
  inner_out_.reset();
  key_waiter_.wake();
  output_waiter_.wake();
}

}  // namespace dtool::ssh
