// SPDX-License-Identifier: MIT
#include "ssh/program/askpass.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "ssh/kept/kept_connection.h"
#include "ssh/kept/kept_folder.h"
#include "ssh/machine/interrupts.h"

namespace dtool::ssh {

namespace {

using namespace askpass_protocol;

constexpr const char* kVariable = "DTOOL_ASKPASS";

}  // namespace

void wipe(std::string& secret) {
  ::explicit_bzero(secret.data(), secret.size());
  secret.clear();
}

bool is_askpass(int argc) {
  return argc == 2 && std::getenv(kVariable) != nullptr;
}

int askpass(const std::string& prompt) {
  try {
    const std::optional<KeptFolder> folder = KeptFolder::open(KeptFolder::Make::no);
    const std::string name = std::getenv(kVariable);
    if (!folder || name.find('/') != name.npos) return 1;
    const KeptFolder::Connecting connecting = folder->connect(name);
    if (connecting.reached != Reached::yes) return 1;
    const char* hint = std::getenv("SSH_ASKPASS_PROMPT");
    const std::string_view wanted = hint == nullptr ? "" : hint;
    char kind = kSecret;
    if (wanted == "confirm") kind = kConfirmation;
    if (wanted == "none") kind = kNotice;
    const int fd = connecting.socket.get();
    if (!send_message(fd, kind + prompt.substr(0, kLongestPrompt))) return 1;
    pollfd readable{fd, POLLIN, 0};
    while (::poll(&readable, 1, -1) < 0 && errno == EINTR) {
    }
    Message answer;
    if (receive_message(fd, answer) != Received::message) return 1;
    if (answer.bytes.front() != kGiven) return 1;
    std::string text = answer.bytes.substr(1) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    wipe(text);
    wipe(answer.bytes);
    return 0;
  } catch (const std::exception&) {
    return 1;  // ssh goes on without an answer
  }
}

std::vector<std::string> askpass_environment(const std::string& name) {
  std::vector<std::string> variables = {
      "SSH_ASKPASS=" + std::filesystem::read_symlink("/proc/self/exe").string(),
      "SSH_ASKPASS_REQUIRE=force", fmt::format("{}={}", kVariable, name),
      "DTOOL_RUN_ID=",  // an ssh that stays is no process of the run that dtool may be started in
  };
  // OpenSSH before 8.4 uses SSH_ASKPASS only if it could open a window.
  if (std::getenv("DISPLAY") == nullptr) variables.emplace_back("DISPLAY=:");
  return variables;
}

OwnedFd open_terminal() {
  OwnedFd terminal(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  if (terminal && ::tcgetpgrp(terminal.get()) != ::getpgrp()) terminal.reset();
  return terminal;
}

void show_at(int terminal, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(terminal, text.data(), text.size());
    if (count > 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      pollfd writable{terminal, POLLOUT, 0};
      if (::poll(&writable, 1, 1000) <= 0) return;
    } else if (errno != EINTR) {
      return;
    }
  }
}

HiddenTyping::HiddenTyping(int terminal) : terminal_(terminal) {
  is_changed_ = ::tcgetattr(terminal_, &before_) == 0;
  termios hidden = before_;
  hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHOE | ECHOK | ECHONL);
  hidden.c_lflag |= ICANON | ISIG;
  is_changed_ = is_changed_ && ::tcsetattr(terminal_, TCSAFLUSH, &hidden) == 0;
}

HiddenTyping::~HiddenTyping() {
  if (is_changed_) ::tcsetattr(terminal_, TCSADRAIN, &before_);
  show_at(terminal_, "\n");
}

namespace {

/// What a signal leaves of the terminal while nothing else gives it back.
class LeavesTerminal {
 public:
  explicit LeavesTerminal(int terminal) {
    if (::tcgetattr(terminal, &before_) == 0) leave_terminal_with(terminal, &before_, "\n");
  }
  ~LeavesTerminal() { leave_terminal_with(-1, nullptr, nullptr); }
  LeavesTerminal(const LeavesTerminal&) = delete;
  LeavesTerminal& operator=(const LeavesTerminal&) = delete;

 private:
  termios before_{};
};

}  // namespace

std::optional<std::string> ask_secret(std::string_view question) {
  const OwnedFd terminal = open_terminal();
  if (!terminal) return std::nullopt;
  ::prctl(PR_SET_DUMPABLE, 0);  // a core would have the answer
  const EndsAtOnce ends_at_once;
  const LeavesTerminal leaves(terminal.get());
  const HiddenTyping hidden(terminal.get());
  if (!hidden.is_hidden()) return std::nullopt;
  show_at(terminal.get(), question);
  std::string text;
  text.reserve(2 * kMostTyped);  // no copies are left behind
  for (char byte = 0; text.size() < kMostTyped;) {
    pollfd readable{terminal.get(), POLLIN, 0};
    if (::poll(&readable, 1, -1) < 0) continue;
    const ssize_t count = ::read(terminal.get(), &byte, 1);
    if (count == 1 && byte == '\n') return text;
    if (count == 1) text += byte;
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) break;
  }
  wipe(text);
  return std::nullopt;
}

}  // namespace dtool::ssh
