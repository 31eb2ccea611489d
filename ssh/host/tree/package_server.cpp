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
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "killfiles/channel/channel.h"
#include "killfiles/channel/door.h"
#include "killfiles/channel/sha256.h"
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

namespace {

constexpr std::chrono::seconds kForAnswer{3};
constexpr std::chrono::seconds kForFirst{10};  // bytes: the other host may have none yet
constexpr std::chrono::seconds kForMore{30};
constexpr std::uint64_t kPassedStep = 262'144;  // so many bytes have to come in that time

/// Throws NotGiven if nothing comes; `on_second` is called while it waits.
void await(const Descriptor& socket, short event, std::chrono::seconds patience,
           const std::string& from, const std::function<void()>& on_second) {
  for (std::chrono::seconds waited = 0s; waited < patience; ++waited) {
    pollfd polled{socket.get(), event, 0};
    if (::poll(&polled, 1, 1000) > 0) return;
    on_second();
  }
  throw NotGiven("no answer from " + from + " for " + std::to_string(patience.count()) + " s");
}

Descriptor connect_to(const RelayPart::Parent& parent, int number, const std::string& from) {
  const Address address = parse_address(parent.address, parent.port);
  const int family = address.size == 0 ? AF_INET : address.bytes.ss_family;
  Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int reason = 0;
  if (::connect(socket.get(), address.get(), address.size) != 0 && errno != EINPROGRESS)
    reason = errno;
  if (reason == 0) {
    await(socket, POLLOUT, kForAnswer, from, [] {});
    socklen_t size = sizeof reason;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &reason, &size);
  }
  if (reason != 0) throw NotGiven("no connection to " + from + ": " + std::strerror(reason));
  const std::string hello = make_hello(parent.secret.text, number);
  if (::send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(hello.size()))
    throw NotGiven(from + " broke off");
  await(socket, POLLIN, kForAnswer, from, [] {});
  std::string welcome(kWelcomeSize, '\0');  // it comes in one piece, as the first of a connection
  const ssize_t size = ::recv(socket.get(), welcome.data(), welcome.size(), 0);
  if (size == 0 || (size < 0 && errno == ECONNRESET)) throw NotGiven(from + " broke off");
  if (size != static_cast<ssize_t>(kWelcomeSize) || !is_welcome(parent.secret.text, hello, welcome))
    throw NotGiven("something else answers at " + from);
  return socket;
}

}  // namespace

PassedOn::PassedOn(const std::string& path, const RelayPart& part, PackageServer& server,
                   std::function<void(const TreeNews&)> tell)
    : part_(part),
      server_(server),
      tell_(std::move(tell)),
      file_(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) {
  if (!file_.is_open()) throw std::runtime_error(with_reason("cannot make " + path));
  content_.emplace(file_.get());
  server_.add(part.number, file_);
  const std::uint16_t port = server_.port();
  tell_({true, port == 0 ? "" : own_address(), port, 0});
}

void PassedOn::take_from_launcher(FrameInput& input, std::chrono::milliseconds patience) {
  for (;;) {
    const auto frame = input.next(patience);
    if (!frame) throw BadMessage("the package breaks off");
    if (frame->kind != Kind::package_bytes) throw BadMessage("it is not a package");
    write_all(file_.get(), to_frame(frame->kind, frame->body));
    if (frame->body.empty()) return;
  }
}

/// Tells how many bytes have come, once a second. A host that sends a byte now and then would hold
/// this one for days.
void PassedOn::take_from(const RelayPart::Parent& parent, std::chrono::milliseconds patience) {
  const auto for_step = std::min<std::chrono::milliseconds>(kForMore, patience);
  const std::string from = parent.address + ":" + std::to_string(parent.port);
  const Descriptor socket = connect_to(parent, static_cast<int>(part_.number), from);
  Sha256 sha;
  std::uint64_t came = 0;
  std::uint64_t next_step = kPassedStep;
  auto told = Clock::now();
  auto stepped = told;
  while (came < parent.size) {
    if (Clock::now() - stepped > for_step) throw NotGiven(from + " sends too little");
    await(socket, POLLIN, came == 0 ? kForFirst : kForMore, from, [&] {
      tell_({false, "", 0, came});
    });
    std::array<char, 65536> piece;
    const std::size_t most = std::min<std::uint64_t>(piece.size(), parent.size - came);
    const ssize_t size = ::recv(socket.get(), piece.data(), most, 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (size <= 0) throw NotGiven(from + " broke off");
    const std::string_view bytes(piece.data(), static_cast<std::size_t>(size));
    sha.add(bytes);
    write_all(file_.get(), bytes);
    came += bytes.size();
    if (came >= next_step) {
      next_step = came + kPassedStep;
      stepped = Clock::now();
    }
    const bool is_first = came == bytes.size();
    if (!is_first && Clock::now() - told < 1s && came < parent.size) continue;
    told = Clock::now();
    tell_({false, "", 0, came});
  }
  if (to_hex(sha.finish()) != parent.sha256)
    throw NotGiven("what " + from + " sent is not the package", true);
}

void PassedOn::get(FrameInput& input, std::chrono::milliseconds patience) {
  if (part_.parent) {
    take_from(*part_.parent, patience);
  } else {
    take_from_launcher(input, patience);
  }
  ::lseek(file_.get(), 0, SEEK_SET);
}

}  // namespace dtool::host
