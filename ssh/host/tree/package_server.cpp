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
constexpr auto kPatience = 10s;   // the time in which a peer has to take kStep bytes
constexpr auto kLinger = 1s;      // the least time that the server stays after the last peer came
constexpr int kMostAtOnce = 64;
constexpr int kLookAgain = 10;  // milliseconds, at a file that grows

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
  Server(Descriptor listener, Descriptor control, std::string secret, std::chrono::seconds longest)
      : listener_(std::move(listener)),
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
    std::int64_t number = 0;
    std::shared_ptr<const Descriptor> file = {};  ///< null: it has not begun here
    off_t at = 0;
    off_t size = 0;  ///< the size of what there is of the file

    bool has_all() const { return at >= size; }
  };

  bool is_over(Clock::time_point now);
  void make_room();
  void let_in(Clock::time_point now);
  void hear(int descriptor, Clock::time_point now);
  void send(int descriptor, Clock::time_point now);
  bool obey(Clock::time_point now);

  Descriptor listener_;
  Descriptor control_;
  std::string secret_;
  std::chrono::seconds longest_;  ///< once no further peer is to be expected
  std::optional<Clock::time_point> ends_at_;
  Clock::time_point came_ = Clock::now();
  std::int64_t last_number_ = 0;
  /// The packages' files by number of the package.
  std::map<std::int64_t, std::shared_ptr<const Descriptor>> files_;
  std::map<int, Guest> guests_;  ///< the guests by descriptor
  std::map<int, Peer> peers_;    ///< the peers by descriptor
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
  std::erase_if(guests_,
                [&](const auto& each) { return now - each.second.since > kPatienceWithGuests; });
  if (!ends_at_) return false;
  return (peers_.empty() && now - came_ > kLinger) || now > *ends_at_;
}

/// False: the process that began this has ended.
bool Server::obey(Clock::time_point now) {
  auto received = OrderMessage().receive(control_.get());
  if (!received) return false;
  auto& [order, file] = *received;
  if (order.word == kAdd) files_[order.number] = std::make_shared<Descriptor>(std::move(file));
  if (order.word == kDrop || order.word == kCut) files_.erase(order.number);
  if (order.word == kCut)
    std::erase_if(peers_, [&](const auto& each) { return each.second.number == order.number; });
  if (order.word == kFinish) ends_at_ = now + longest_;
  return true;
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
  const auto number = size > 0 ? read_hello(secret_, said) : std::nullopt;
  if (number && peers_.size() < kMostPeers) {
    const std::string welcome = make_welcome(secret_, said);
    ::send(descriptor, welcome.data(), welcome.size(), MSG_NOSIGNAL);
    peers_.emplace(descriptor, Peer{std::move(guest->second.socket), now, *number});
    came_ = now;
  }
  guests_.erase(guest);
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
    std::vector<pollfd> polled{{control_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const auto& [descriptor, guest] : guests_) polled.push_back({descriptor, POLLIN, 0});
    int patience = 500;
    for (const auto& [descriptor, peer] : peers_) {
      if (peer.has_all()) patience = kLookAgain;
      polled.push_back({descriptor, static_cast<short>(peer.has_all() ? 0 : POLLOUT), 0});
    }
    if (::poll(polled.data(), polled.size(), patience) < 0) continue;
    const auto now = Clock::now();
    for (const pollfd& each : polled) {
      if (each.revents == 0) continue;
      if (each.fd == control_.get()) {
        if (!obey(now)) return;
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

PackageServer::PackageServer(const std::string& secret, std::chrono::seconds longest)
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
    Server(std::move(listener), std::move(control), secret, longest).run();
  } catch (const std::exception&) {  // no caller can be told
  }
  ::_exit(0);
}

PackageServer& PackageServer::of(const RelayPart& part, std::optional<PackageServer>& server) {
  if (!server || server->secret_ != part.secret.text)
    server.emplace(part.secret.text, std::chrono::seconds(part.serves_s));
  return *server;
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
  if (pid_ <= 0) return;
  tell(0, kFinish, -1);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace dtool::host
