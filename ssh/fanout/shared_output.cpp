#include "ssh/fanout/shared_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "ssh/host_error.h"
#include "ssh/machine/fd_bytes.h"

namespace dtool::ssh {
namespace {

/// How often a host that has all there is looks for more.
constexpr std::chrono::milliseconds kLookAgain{5};
/// How many bytes are digested at once.
constexpr std::size_t kDigested = 1 << 20;

/// Not in memory: /tmp often is, and the output may be larger than that.
OwnedFd file_without_name() {
  const char* chosen = std::getenv("TMPDIR");
  for (const char* folder : {chosen, "/var/tmp", "/tmp"}) {
    if (folder == nullptr) continue;
    std::string name = std::string(folder) + "/dtool.XXXXXX";
    OwnedFd file(::mkostemp(name.data(), O_CLOEXEC));
    if (!file) continue;
    ::unlink(name.c_str());
    return file;
  }
  throw HostError(Failure::local_program,
                  fmt::format("cannot make a file in /var/tmp: {}", std::strerror(errno)));
}

OwnedFd file_with(std::string_view bytes) {
  OwnedFd file = file_without_name();
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR)
      throw HostError(Failure::local_program,
                      fmt::format("cannot write a file in /var/tmp: {}", std::strerror(errno)));
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
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

SharedOutput::SharedOutput(Reactor& reactor, const ProgramOutput& program)
    : reactor_(reactor),
      name_(program.arguments.front()),
      in_(file_with(program.input)),
      out_(file_without_name()),
      err_(file_without_name()),
      process_(reactor, Process::Program{program.arguments, {}, {}},
               Process::Descriptors{in_.get(), out_.get(), err_.get(), -1}),
      on_whole_(program.on_whole) {}

void SharedOutput::expect_success(int exit_code) const {
  if (exit_code == 0) return;
  std::array<char, 1024> words{};
  const ssize_t count = ::pread(err_.get(), words.data(), words.size(), 0);
  std::string_view said(words.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  said = said.substr(0, said.find('\n'));
  throw HostError(Failure::local_program, fmt::format("{} failed with exit code {}{}{}", name_,
                                                      exit_code, said.empty() ? "" : ": ", said));
}

Transferred SharedOutput::transferred(off_t at) {
  Transferred so_far{static_cast<std::uint64_t>(at)};
  if (process_.exit_code()) so_far.all = static_cast<std::uint64_t>(size_of(out_.get()));
  return so_far;
}

/// False where nobody takes it any more.
asio::awaitable<bool> SharedOutput::send_what_is_there(Waiter& waiter, int fd, off_t& at,
                                                       Deadline deadline) {
  constexpr std::size_t kChunk = 65'536;  // what a pipe holds
  const ssize_t count = ::sendfile(fd, out_.get(), &at, kChunk);
  if (count >= 0 || errno == EINTR) co_return true;
  if (errno != EAGAIN) co_return false;
  const auto outcome = co_await waiter.wait(Waiter::For::writable, deadline);
  co_return outcome == Waiter::Outcome::ready;
}

/// A piece at a time, so that no host waits for the rest: a host's pipe takes less than this.
void SharedOutput::digest_more() {
  if (!on_whole_) return;
  const auto exit_code = process_.exit_code();  // before the size: nothing is added after it
  std::vector<char> bytes(kDigested);
  const ssize_t count = ::pread(out_.get(), bytes.data(), bytes.size(), digested_);
  if (count > 0) {
    digest_.add({bytes.data(), static_cast<std::size_t>(count)});
    digested_ += count;
  }
  if (exit_code != 0 || digested_ < size_of(out_.get())) return;
  const auto on_whole = std::exchange(on_whole_, nullptr);
  on_whole(static_cast<std::uint64_t>(digested_), digest_.hex());
}

asio::awaitable<void> SharedOutput::send(int fd, std::string_view before, Deadline deadline,
                                         std::function<void(const Transferred&)> on_sent) {
  const bool is_taken = co_await write_all(reactor_, fd, before, deadline);
  if (!is_taken) co_return;
  Waiter waiter(reactor_, fd);
  off_t at = 0;
  for (;;) {
    const auto exit_code = process_.exit_code();  // before the size: nothing is added after it
    while (at < size_of(out_.get())) {
      if (const auto code = process_.exit_code()) expect_success(*code);  // of no good to anybody
      const off_t earlier = at;
      const bool goes_on = co_await send_what_is_there(waiter, fd, at, deadline);
      if (!goes_on) co_return;
      digest_more();
      if (at != earlier) on_sent(transferred(at));
    }
    digest_more();
    if (exit_code) {
      expect_success(*exit_code);
      on_sent(transferred(at));  // that this is all
      co_return;
    }
    if (Clock::now() >= deadline || !has_reader(fd)) co_return;
    co_await reactor_.sleep(kLookAgain);
  }
}

}  // namespace dtool::ssh
