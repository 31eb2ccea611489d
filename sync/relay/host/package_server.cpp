// SPDX-License-Identifier: MIT
#include "sync/relay/host/package_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ssh/host/channel.h"
#include "ssh/host/network.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostPeers = 64;
constexpr std::size_t kMostGuests = 256;
constexpr auto kPatienceWithGuests = 5s;
constexpr off_t kStep = 262'144;  // a peer has to take this many bytes
constexpr auto kPatience = 10s;   // in that time
constexpr auto kLinger = 1s;      // after the last one came
constexpr int kMostAtOnce = 64;

class Server {
 public:
  Server(Descriptor listener, Descriptor file, Descriptor control, std::string secret,
         std::chrono::seconds longest)
      : listener_(std::move(listener)),
        file_(std::move(file)),
        control_(std::move(control)),
        secret_(std::move(secret)),
        longest_(longest) {}

  void run();

 private:
  /// A connection that has proven nothing yet.
  struct Guest {
    Descriptor socket;
    std::string address;
    Clock::time_point since;
    std::int64_t number;
    std::string said = {};
  };
  struct Peer {
    Descriptor socket;
    Clock::time_point since;
    off_t at = 0;
  };

  bool is_over(Clock::time_point now);
  void make_room();
  void let_in(Clock::time_point now);
  void hear(int descriptor, Clock::time_point now);
  void send(int descriptor, Clock::time_point now);

  Descriptor listener_;
  Descriptor file_;
  Descriptor control_;
  std::string secret_;
  std::chrono::seconds longest_;  ///< after the last peer was to be expected
  off_t size_ = 0;
  std::optional<Clock::time_point> whole_at_;
  Clock::time_point came_ = Clock::now();
  std::int64_t last_number_ = 0;
  std::map<int, Guest> guests_;  ///< by descriptor
  std::map<int, Peer> peers_;    ///< likewise
};

/// Disconnects peers that have everything or take nothing. Guests do not keep the server alive.
bool Server::is_over(Clock::time_point now) {
  struct stat status {};
  ::fstat(file_.get(), &status);
  size_ = status.st_size;
  for (auto& [descriptor, peer] : peers_)
    if (peer.at >= size_) peer.since = now;
  std::erase_if(peers_, [&](const auto& each) {
    return now - each.second.since > kPatience || (whole_at_ && each.second.at >= size_);
  });
  std::erase_if(guests_,
                [&](const auto& each) { return now - each.second.since > kPatienceWithGuests; });
  if (!whole_at_) return false;
  return (peers_.empty() && now - came_ > kLinger) || now - *whole_at_ > longest_;
}

/// The oldest guest of the address with the most guests goes.
void Server::make_room() {
  std::map<std::string, int> counts;
  for (const auto& [descriptor, guest] : guests_) ++counts[guest.address];
  const auto chosen = std::ranges::max_element(guests_, {}, [&](const auto& each) {
    return std::pair(counts[each.second.address], -each.second.number);
  });
  if (chosen != guests_.end()) guests_.erase(chosen);
}

void Server::let_in(Clock::time_point now) {
  for (int i = 0; i < kMostAtOnce; ++i) {
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    Descriptor socket(::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&name), &size,
                                SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open() && (errno == EMFILE || errno == ENFILE)) make_room();
    if (!socket.is_open()) break;
    if (guests_.size() >= kMostGuests) make_room();
    const int descriptor = socket.get();
    guests_.emplace(descriptor, Guest{std::move(socket), address_in(name), now, ++last_number_});
  }
}

void Server::hear(int descriptor, Clock::time_point now) {
  const auto guest = guests_.find(descriptor);
  std::string& said = guest->second.said;
  std::string bytes(kHelloSize + 1 - said.size(), '\0');
  const ssize_t size = ::recv(descriptor, bytes.data(), bytes.size(), 0);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  said += bytes.substr(0, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  if (size > 0 && said.size() < kHelloSize && may_be_hello(said)) return;
  if (size > 0 && read_hello(secret_, said) && peers_.size() < kMostPeers) {
    peers_.emplace(descriptor, Peer{std::move(guest->second.socket), now});
    came_ = now;
  }
  guests_.erase(guest);
}

void Server::send(int descriptor, Clock::time_point now) {
  Peer& peer = peers_.at(descriptor);
  const off_t before = peer.at;
  const ssize_t sent = ::sendfile(descriptor, file_.get(), &peer.at, kStep);
  if (peer.at / kStep > before / kStep) peer.since = now;
  if (sent < 0 && errno != EAGAIN && errno != EINTR) peers_.erase(descriptor);
}

void Server::run() {
  for (;;) {
    if (is_over(Clock::now())) return;
    std::vector<pollfd> polled{{control_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const auto& [descriptor, guest] : guests_) polled.push_back({descriptor, POLLIN, 0});
    int patience = 500;
    for (const auto& [descriptor, peer] : peers_) {
      if (peer.at >= size_) patience = 50;
      polled.push_back({descriptor, static_cast<short>(peer.at < size_ ? POLLOUT : 0), 0});
    }
    if (::poll(polled.data(), polled.size(), patience) < 0) continue;
    const auto now = Clock::now();
    for (const pollfd& each : polled) {
      if (each.revents == 0) continue;
      if (each.fd == control_.get()) {
        char word = 0;
        if (::read(each.fd, &word, 1) != 1) return;  // the process that began this has ended
        whole_at_ = now;
      } else if (each.fd == listener_.get()) {
        let_in(now);
      } else if (guests_.contains(each.fd)) {
        hear(each.fd, now);
      } else if (peers_.contains(each.fd) && (each.revents & POLLOUT) != 0) {
        send(each.fd, now);
      } else {
        peers_.erase(each.fd);
      }
    }
  }
}

/// The lock of the folder, the way to the launcher and the like are none of its business.
void close_others(const std::vector<int>& kept) {
  const long most = std::min(::sysconf(_SC_OPEN_MAX), 65536L);
  for (int each = 0; each < most; ++each)
    if (std::ranges::find(kept, each) == kept.end()) ::close(each);
}

}  // namespace

PackageServer::PackageServer(const std::string& path, const std::string& secret,
                             std::chrono::seconds longest) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  Descriptor listener = listen_on_free_port();
  int pipe[2];
  if (!file.is_open() || !listener.is_open() || ::pipe2(pipe, O_CLOEXEC) != 0) return;
  Descriptor control(pipe[0]);
  control_ = Descriptor(pipe[1]);
  pid_ = ::fork();
  if (pid_ > 0) port_ = port_of(listener);
  if (pid_ != 0) return;
  ::prctl(PR_SET_NAME, "dtool-relay");
  close_others({file.get(), listener.get(), control.get()});
  try {
    Server(std::move(listener), std::move(file), std::move(control), secret, longest).run();
  } catch (const std::exception&) {  // no caller can be told
  }
  ::_exit(0);
}

PackageServer::~PackageServer() {
  control_ = Descriptor();
  if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
}

void PackageServer::finish() {
  if (pid_ <= 0) return;
  if (::write(control_.get(), "w", 1) == 1) ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace dtool::host
