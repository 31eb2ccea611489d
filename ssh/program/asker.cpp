// SPDX-License-Identifier: MIT
#include "ssh/program/asker.h"

#include <fmt/format.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

#include "killfiles/printable.h"
#include "ssh/host_error.h"
#include "ssh/kept/kept_connection.h"
#include "ssh/notice.h"
#include "ssh/program/askpass.h"
#include "ssh/program/program.h"

namespace dtool::ssh {
namespace {

using namespace askpass_protocol;

constexpr auto kAskSlice = std::chrono::milliseconds(100);

/// Lets the opening wake who waits there.
class WaitsAt {
 public:
  WaitsAt(Opening& opening, Waiter& waiter) : opening_(opening) { opening_.door = &waiter; }
  ~WaitsAt() { opening_.door = nullptr; }
  WaitsAt(const WaitsAt&) = delete;
  WaitsAt& operator=(const WaitsAt&) = delete;

 private:
  Opening& opening_;
};

void take_out(std::string& text, const std::string& name) {
  if (name.empty()) return;
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1))
    text.replace(at, name.size(), "*");
}

}  // namespace

std::string prompt_of_any_host(const std::string& prompt, const Opening& opening) {
  std::string text = prompt;
  take_out(text, opening.user + "@" + opening.address);
  take_out(text, opening.user + "@" + opening.host.name);
  take_out(text, opening.address);
  take_out(text, opening.host.name);
  return text;
}

/// The terminal, while one question is asked.
class Asker::Turn {
 public:
  explicit Turn(Asker& asker) : asker_(asker) { asker_.is_busy_ = true; }
  ~Turn() { asker_.is_busy_ = false; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Asker& asker_;
  OpenQuestion question_;
};

Asker::~Asker() {
  for (auto& [prompt, text] : answers_) wipe(text);
}

bool Asker::is_alive(int caller) const {
  char byte = 0;
  const ssize_t count = ::recv(caller, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count > 0 || (count < 0 && errno == EAGAIN);
}

asio::awaitable<void> Asker::serve(const OwnedFd& listener, Opening& opening, const bool& is_over) {
  Waiter waiter(reactor_, listener.get());
  const WaitsAt here(opening, waiter);
  while (!is_over) {
    const Deadline soon = after(kAskSlice);
    co_await waiter.wait(Waiter::For::readable, soon);
    const OwnedFd caller(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (caller && is_own_user(caller.get())) co_await answer(caller.get(), opening, is_over);
  }
}

asio::awaitable<void> Asker::answer(int caller, Opening& opening, const bool& is_over) {
  const Deadline soon = after(std::chrono::seconds(2));
  std::optional<Message> question = co_await await_message(reactor_, caller, soon);
  if (!question) co_return;
  const char kind = question->bytes.front();
  std::string prompt = killfiles::printable_start(question->bytes.substr(1), kLongestPrompt);
  while (prompt.ends_with(' ')) prompt.pop_back();
  if (kind == kNotice) {
    const OwnedFd terminal = open_terminal();
    const std::string line =
        fmt::format("\r\x1b[Kdtool: {}: {}\n", to_string(opening.host), prompt);
    if (terminal) show_at(terminal.get(), line);
    opening.is_asking = true;
    const auto began = Clock::now();
    while (!is_over && !is_stopped_ && is_alive(caller)) co_await reactor_.sleep(kAskSlice);
    opening.deadline += Clock::now() - began;
    opening.is_asking = false;
    co_return;
  }
  opening.is_asking = true;
  const auto began = Clock::now();
  std::optional<std::string> text = co_await find_answer(caller, prompt, kind, opening);
  opening.deadline += Clock::now() - began;
  opening.is_asking = false;
  if (!text && is_alive(caller)) opening.refused = prompt;
  std::string reply(1, text ? kGiven : kRefused);
  if (text) reply += *text;
  if (text) ++opening.answers;
  send_message(caller, reply);
  wipe(reply);
  if (text) wipe(*text);
}

/// An answer that was given for another host, where the user wants that, or the user's.
asio::awaitable<std::optional<std::string>> Asker::find_answer(int caller, std::string prompt,
                                                               char kind, Opening& opening) {
  // A key that is not known is refused, never agreed to at a prompt.
  if (prompt.find("(yes/no") != prompt.npos) co_return std::nullopt;
  const std::string key = opening.user + "\n" + prompt_of_any_host(prompt, opening);
  const auto before = opening.given.find(key);
  const bool is_again = before != opening.given.end();
  const auto known = [&]() -> std::optional<std::string> {
    const auto found = answers_.find(key);
    const bool is_new = found != answers_.end() && (!is_again || found->second != before->second);
    return is_new && ask_ == Ask::once && kind == kSecret ? std::optional(found->second)
                                                          : std::nullopt;
  };
  std::optional<std::string> text = known();
  while (!text && is_busy_ && !is_stopped_) {
    if (!is_alive(caller)) {
      opening.was_left = true;
      co_return std::nullopt;
    }
    co_await reactor_.sleep(kAskSlice / 2);
    text = known();
  }
  if (!text) {
    const std::string line =
        fmt::format("\r\x1b[Kdtool: {} asks{}: {}", to_string(opening.host),
                    is_again ? " again, the answer was not taken" : "", prompt);
    text = co_await ask(caller, line, kind);
    if (text && ask_ == Ask::once && kind == kSecret) answers_[key] = *text;
  }
  if (text) opening.given[key] = *text;
  co_return text;
}

asio::awaitable<std::optional<std::string>> Asker::ask(int caller, std::string line, char kind) {
  if (is_stopped_) co_return std::nullopt;
  const OwnedFd terminal = open_terminal();
  if (!terminal) co_return std::nullopt;
  const Turn turn(*this);
  const HiddenTyping hidden(terminal.get());
  if (!hidden.is_hidden()) co_return std::nullopt;
  show_at(terminal.get(), line + (kind == kConfirmation ? " [y/N] " : " "));
  std::string text;
  text.reserve(2 * kMostTyped);  // no copies are left behind
  Waiter waiter(reactor_, terminal.get());
  while (!is_stopped_ && is_alive(caller) && text.size() < kMostTyped) {
    const Deadline soon = after(kAskSlice);
    co_await waiter.wait(Waiter::For::readable, soon);
    char bytes[512];
    const ssize_t count = ::read(terminal.get(), bytes, sizeof bytes);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) break;
    if (count <= 0) continue;
    text.append(bytes, static_cast<std::size_t>(count));
    ::explicit_bzero(bytes, sizeof bytes);
    if (text.back() != '\n') continue;
    text.pop_back();
    if (kind == kConfirmation && text != "y" && text != "yes") co_return std::nullopt;
    co_return text;
  }
  wipe(text);
  co_return std::nullopt;
}

}  // namespace dtool::ssh
