// SPDX-License-Identifier: MIT
#include "ssh/fanout/shared_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "ssh/host_error.h"
#include "ssh/machine/fd_bytes.h"

namespace dtool::ssh {
namespace {

/// How often a host that has all there is looks for more.
constexpr std::chrono::milliseconds kLookAgain{5};

OwnedFd make_file() {
  OwnedFd file = file_without_name();
  if (file) return file;
  throw HostError(Failure::local_program,
                  fmt::format("cannot make a file in /var/tmp: {}", std::strerror(errno)));
}

bool has_reader(int pipe) {
  pollfd end{pipe, 0, 0};
  return ::poll(&end, 1, 0) == 0;
}

off_t size_of(int fd) {
  struct stat status {};
  ::fstat(fd, &status);
  return status.st_size;
}

}  // namespace

SharedOutput::SharedOutput(Reactor& reactor, const SharedBytes& bytes)
    : reactor_(reactor),
      file_(make_file()),
      on_whole_(bytes.on_whole),
      thread_([this, maker = bytes.make] { make(maker); }) {}

SharedOutput::~SharedOutput() {
  is_unwanted_ = true;
  thread_.join();
}

void SharedOutput::make(const std::function<void(const SharedBytes::Write&)>& maker) {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);  // they are the other thread's
  try {
    maker([this](std::string_view bytes) {
      if (is_unwanted_) throw std::runtime_error("no host needs the rest of it");
      if (on_whole_) digest_.add(bytes);
      while (!bytes.empty()) {
        const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
        if (count < 0 && errno != EINTR)
          throw std::runtime_error(
              fmt::format("cannot write a file in /var/tmp: {}", std::strerror(errno)));
        bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
      }
    });
  } catch (const std::exception& error) {
    error_ = error.what();
  }
  is_made_ = true;
}

void SharedOutput::tell_when_made() {
  if (!is_made_ || !error_.empty() || !on_whole_) return;
  const auto on_whole = std::exchange(on_whole_, nullptr);
  on_whole(static_cast<std::uint64_t>(size_of(file_.get())), digest_.hex());
}

void SharedOutput::expect_success() const {
  if (!error_.empty()) throw HostError(Failure::local_program, error_);
}

Transferred SharedOutput::transferred(off_t at) const {
  Transferred so_far{static_cast<std::uint64_t>(at)};
  if (is_made_) so_far.all = static_cast<std::uint64_t>(size_of(file_.get()));
  return so_far;
}

/// False if the reader has gone, or the file cannot be read.
asio::awaitable<bool> SharedOutput::send_what_is_there(Waiter& waiter, int fd, off_t& at,
                                                       Deadline deadline) {
  constexpr std::size_t kChunk = 65'536;  // what a pipe holds
  const ssize_t count = ::sendfile(fd, file_.get(), &at, kChunk);
  if (count >= 0 || errno == EINTR) co_return true;
  if (errno != EAGAIN) co_return false;
  const auto outcome = co_await waiter.wait(Waiter::For::writable, deadline);
  co_return outcome == Waiter::Outcome::ready;
}

asio::awaitable<bool> SharedOutput::send(int fd, std::string_view before, Deadline deadline,
                                         std::function<void(const Transferred&)> on_sent) {
  const bool is_taken = co_await write_all(reactor_, fd, before, deadline);
  if (!is_taken) co_return false;
  Waiter waiter(reactor_, fd);
  off_t at = 0;
  for (;;) {
    const bool is_made = is_made_;  // before the size: nothing is added after it
    while (at < size_of(file_.get())) {
      if (is_made_) expect_success();  // of no good to anybody
      const off_t earlier = at;
      const bool goes_on = co_await send_what_is_there(waiter, fd, at, deadline);
      if (!goes_on) co_return false;
      tell_when_made();
      if (at != earlier) on_sent(transferred(at));
    }
    tell_when_made();
    if (is_made) {
      expect_success();
      on_sent(transferred(at));  // that this is all
      co_return true;
    }
    if (Clock::now() >= deadline || !has_reader(fd)) co_return false;
    co_await reactor_.sleep(kLookAgain);
  }
}

}  // namespace dtool::ssh
