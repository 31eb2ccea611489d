// SPDX-License-Identifier: MIT
#include "ssh/host/tree/package_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "killfiles/channel/door.h"
#include "ssh/host/network.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostPeers = 64;
constexpr off_t kStep = 262'144;  // a peer has to take this many bytes
constexpr auto kPatience = 10s;   // the time in which a peer has to take kStep bytes
constexpr auto kLinger = 1s;      // the least time that the server stays after the last peer came
constexpr int kLookAgain = 10;    // milliseconds, at a file that grows

/// What the process that began it says.
struct Order {
  std::int64_t number = 0;  ///< the number of a package
  char word = 0;            ///< kAdd, with its file; kDrop, kCut, kFinish
};
constexpr char kAdd = 'a';
constexpr char kDrop = 'd';
constexpr char kCut = 'c';
constexpr char kFinish = 'f';

/// An order, and room for the descriptor that may come with it.
class OrderMessage {
 public:
  OrderMessage() {
    message_.msg_iov = &bytes_;
    message_.msg_iovlen = 1;
    message_.msg_control = control_;
    message_.msg_controllen = sizeof control_;
  }

  bool send(int socket, const Order& order, int file) {
    order_ = order;
    if (file == -1) message_.msg_controllen = 0;
    if (cmsghdr* header = CMSG_FIRSTHDR(&message_)) {
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof file);
      std::memcpy(CMSG_DATA(header), &file, sizeof file);
    }
    return ::sendmsg(socket, &message_, MSG_NOSIGNAL) == sizeof order_;
  }

  /// Nothing at the end.
  std::optional<std::pair<Order, Descriptor>> receive(int socket) {
    if (::recvmsg(socket, &message_, MSG_CMSG_CLOEXEC) != sizeof order_) return std::nullopt;
    int file = -1;
    const cmsghdr* header = CMSG_FIRSTHDR(&message_);
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS)
      std::memcpy(&file, CMSG_DATA(header), sizeof file);
    return std::pair(order_, Descriptor(file));
  }

 private:
  Order order_;
  iovec bytes_{&order_, sizeof order_};
  alignas(cmsghdr) char control_[CMSG_SPACE(sizeof(int))] = {};
  msghdr message_{};
};

class Server {
 public:
  Server(std::vector<Descriptor> listeners, Descriptor control, const std::string& secret,
         std::chrono::seconds longest, std::chrono::milliseconds untold)
      : control_(std::move(control)),
        longest_(longest),
        untold_(untold),
        // Only those who know the secret can read a package.
        door_(std::move(listeners),
              {.token = secret,
               .proof = Proof::hello,
               .is_expected = [this](int /*package*/) { return peers_.size() < kMostPeers; }},
              watch_) {}

  void run();

 private:
  struct Peer {
    Descriptor socket;
    Clock::time_point since;
    std::int64_t number = 0;
    std::shared_ptr<const Descriptor> file = {};  ///< null: it has not begun here
    off_t at = 0;
    off_t size = 0;  ///< the size of what there is of the file

    bool has_all() const { return at >= size; }
  };

  bool is_over(Clock::time_point now);
  void let_in(Clock::time_point now);
  void send(int descriptor, Clock::time_point now);
  bool obey(Clock::time_point now);

  Descriptor control_;
  std::chrono::seconds longest_;  ///< once no further peer is to be expected
  std::chrono::milliseconds untold_;
  Clock::time_point told_ = Clock::now();  ///< the time of the last order
  std::optional<Clock::time_point> ends_at_;
  Clock::time_point came_ = Clock::now();
  /// The packages' files by number of the package.
  std::map<std::int64_t, std::shared_ptr<const Descriptor>> files_;
  std::map<int, Peer> peers_;  ///< the peers by descriptor
  Watch watch_;
  Door door_;
};

/// Disconnects peers that have everything or take nothing. Guests do not keep the server alive.
bool Server::is_over(Clock::time_point now) {
  for (auto& [descriptor, peer] : peers_) {
    const auto file = files_.find(peer.number);
    if (!peer.file && file != files_.end()) peer.file = file->second;
    if (!peer.file) continue;
    struct stat status {};
    ::fstat(peer.file->get(), &status);
    peer.size = status.st_size;
    if (peer.has_all()) peer.since = now;
  }
  std::erase_if(peers_, [&](const auto& each) {
    return now - each.second.since > kPatience || (ends_at_ && each.second.has_all());
  });
  door_.turn(Door::now());
  if (!ends_at_) return peers_.empty() && now - told_ > untold_;
  return (peers_.empty() && now - came_ > kLinger) || now > *ends_at_;
}

/// False: the process that began this has ended.
bool Server::obey(Clock::time_point now) {
  auto received = OrderMessage().receive(control_.get());
  if (!received) return false;
  auto& [order, file] = *received;
  told_ = now;
  if (order.word == kAdd) files_[order.number] = std::make_shared<Descriptor>(std::move(file));
  if (order.word == kDrop || order.word == kCut) files_.erase(order.number);
  if (order.word == kCut)
    std::erase_if(peers_, [&](const auto& each) { return each.second.number == order.number; });
  if (order.word == kFinish && !ends_at_) ends_at_ = now + longest_;
  return true;
}

void Server::let_in(Clock::time_point now) {
  for (const int each : watch_.wait(0ms)) {
    for (Caller& caller : door_.take(each, Door::now())) {
      if (peers_.size() >= kMostPeers) break;  // the door asked before these were peers
      const int descriptor = caller.wire.descriptor();
      peers_.emplace(descriptor, Peer{caller.wire.release(), now, caller.place});
      came_ = now;
    }
  }
}

void Server::send(int descriptor, Clock::time_point now) {
  Peer& peer = peers_.at(descriptor);
  const off_t before = peer.at;
  const ssize_t sent = ::sendfile(descriptor, peer.file->get(), &peer.at, kStep);
  if (peer.at / kStep > before / kStep) peer.since = now;
  if (sent < 0 && errno != EAGAIN && errno != EINTR) peers_.erase(descriptor);
}

void Server::run() {
  for (;;) {
    if (is_over(Clock::now())) return;
    std::vector<pollfd> polled{{control_.get(), POLLIN, 0}};
    int patience = 500;
    for (const auto& [descriptor, peer] : peers_) {
      if (peer.has_all()) patience = kLookAgain;
      polled.push_back({descriptor, static_cast<short>(peer.has_all() ? 0 : POLLOUT), 0});
    }
    // The last: a new peer may get the descriptor of one that went in this round.
    polled.push_back({watch_.descriptor(), POLLIN, 0});
    if (::poll(polled.data(), polled.size(), patience) < 0) continue;
    const auto now = Clock::now();
    for (const pollfd& each : polled) {
      if (each.revents == 0) continue;
      if (each.fd == control_.get()) {
        if (!obey(now)) return;
      } else if (each.fd == watch_.descriptor()) {
        let_in(now);
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

PackageServer::PackageServer(const std::string& secret, std::chrono::seconds longest,
                             std::chrono::milliseconds untold)
    : secret_(secret) {
  if (secret.empty() || own_address().empty()) return;
  Descriptor listener = listen_on_free_port();
  int ends[2];
  if (!listener.is_open() || ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return;
  Descriptor control(ends[0]);
  control_ = Descriptor(ends[1]);
  pid_ = ::fork();
  if (pid_ > 0) port_ = port_of(listener);
  if (pid_ != 0) return;
  ::prctl(PR_SET_NAME, "dtool-relay");
  close_others({listener.get(), control.get()});
  try {
    std::vector<Descriptor> listeners;
    listeners.push_back(std::move(listener));
    Server(std::move(listeners), std::move(control), secret, longest, untold).run();
  } catch (const std::exception&) {  // no caller can be told
  }
  ::_exit(0);
}

PackageServer& PackageServer::of(const RelayPart& part, std::optional<PackageServer>& server) {
  if (!server || server->secret_ != part.secret.text || server->has_ended())
    server.emplace(part.secret.text, std::chrono::seconds(part.serves_s));
  return *server;
}

bool PackageServer::has_ended() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == 0) return false;
  pid_ = -1;
  return port_ != 0;
}

PackageServer::~PackageServer() {
  control_ = Descriptor();
  if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
}

/// If that process has gone, hosts find nobody, and get their packages from elsewhere.
void PackageServer::tell(std::int64_t number, char word, int file) {
  if (pid_ > 0) OrderMessage().send(control_.get(), {number, word}, file);
}

void PackageServer::add(std::int64_t number, const Descriptor& file) {
  tell(number, kAdd, file.get());
}

void PackageServer::drop(std::int64_t number) {
  tell(number, kDrop, -1);
}

void PackageServer::cut(std::int64_t number) {
  tell(number, kCut, -1);
}

void PackageServer::finish() {
  tell(0, kFinish, -1);
}

}  // namespace dtool::host
