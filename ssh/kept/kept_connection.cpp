// SPDX-License-Identifier: MIT
#include "ssh/kept/kept_connection.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include "ssh/host_error.h"
#include "ssh/kept/kept_folder.h"
#include "ssh/machine/fd_bytes.h"
#include "ssh/machine/process.h"

namespace dtool::ssh {

namespace {

/// A keeper answers after one round trip to its host, and gives that up sooner than this.
constexpr auto kLongestAnswer = std::chrono::seconds(5);
/// It ends commands that take too long by itself; this much later it must have told.
constexpr auto kSlack = std::chrono::seconds(30);

HostError keeper_gone() {
  return {Failure::connection_lost, "the connection was lost: the process that kept it has ended"};
}

class KeptConnection : public Connection {
 public:
  KeptConnection(Reactor& reactor, OwnedFd keeper, std::string host_key)
      : reactor_(reactor), keeper_(std::move(keeper)), host_key_(std::move(host_key)) {}
  ~KeptConnection() override {
    if (!is_usable_ || reactor_.abandoned()) return;
    send_message(keeper_.get(), std::string_view(&keeper_protocol::kGiveBack, 1));
  }
  KeptConnection(const KeptConnection&) = delete;
  KeptConnection& operator=(const KeptConnection&) = delete;

  asio::awaitable<int> execute(std::string line, CommandStreams streams,
                               Deadline deadline) override;
  void abandon() override { ::shutdown(keeper_.get(), SHUT_RDWR); }
  void expire() override {
    send_message(keeper_.get(), std::string_view(&keeper_protocol::kExpire, 1));
  }
  bool is_usable() const override;
  std::string host_key() const override { return host_key_; }

 private:
  /// One command's streams on this side.
  struct RunningCommand {
    CommandStreams streams;
    Deadline deadline = kNoDeadline;
    Pipe out, err;
    OwnedFd input;
  };

  void send_order(RunningCommand& running, const std::string& line, Deadline deadline);
  asio::awaitable<void> pump(RunningCommand& running, Stream stream);
  asio::awaitable<int> await_result(Deadline deadline);

  Reactor& reactor_;
  OwnedFd keeper_;
  std::string host_key_;
  bool is_usable_ = true;
};

/// The keeper closes its end when the session is lost.
bool KeptConnection::is_usable() const {
  char byte = 0;
  return is_usable_ && ::recv(keeper_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         errno == EAGAIN;
}

void KeptConnection::send_order(RunningCommand& running, const std::string& line,
                                Deadline deadline) {
  CommandStreams& streams = running.streams;
  keeper_protocol::Order order;
  order.shell_output = streams.shell_output;
  if (deadline != kNoDeadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    order.timeout_ms = std::max<std::int64_t>(left.count(), 0);
  }
  if (streams.output_fd < 0) running.out = make_pipe(NonBlocking::both);
  if (streams.error_fd < 0) running.err = make_pipe(NonBlocking::both);
  const int out = streams.output_fd < 0 ? running.out.writer.get() : streams.output_fd;
  const int err = streams.error_fd < 0 ? running.err.writer.get() : streams.error_fd;
  int in = streams.input_fd;
  if (in < 0 && !streams.input.empty()) {
    running.input = memory_file(streams.input);
    if (!running.input) throw HostError(Failure::local_program, "no memory for a command's input");
    in = running.input.get();
  }
  const std::string message = keeper_protocol::pack(keeper_protocol::kExecute, order) + line;
  const bool is_sent = in < 0 ? send_message(keeper_.get(), message, {out, err})
                              : send_message(keeper_.get(), message, {out, err, in});
  running.out.writer.reset();
  running.err.writer.reset();
  running.input.reset();
  if (!is_sent) throw keeper_gone();
  if (streams.on_input_taken) streams.on_input_taken();
}

asio::awaitable<void> KeptConnection::pump(RunningCommand& running, Stream stream) {
  const OwnedFd fd = std::move(stream == Stream::out ? running.out.reader : running.err.reader);
  std::function<void(std::string_view)> on_bytes = [&running, stream](std::string_view bytes) {
    if (running.streams.on_output) running.streams.on_output(stream, bytes);
  };
  co_await read_all(reactor_, fd.get(), on_bytes, &running.deadline);
}

asio::awaitable<int> KeptConnection::await_result(Deadline deadline) {
  const Deadline latest = deadline == kNoDeadline ? kNoDeadline : deadline + kSlack;
  const std::optional<Message> message = co_await await_message(reactor_, keeper_.get(), latest);
  keeper_protocol::Result result;
  std::string_view text;
  const bool is_result = message && message->bytes.front() == keeper_protocol::kResult &&
                         keeper_protocol::unpack(message->bytes, result, text);
  if (!is_result) throw keeper_gone();
  if (result.failure != Failure::none) {
    const std::size_t end = std::min(text.find('\0'), text.size());
    throw HostError(result.failure, std::string(text.substr(0, end)),
                    std::string(text.substr(std::min(end + 1, text.size()))));
  }
  co_return result.exit_code;
}

asio::awaitable<int> KeptConnection::execute(std::string line, CommandStreams streams,
                                             Deadline deadline) {
  RunningCommand running;
  running.streams = std::move(streams);
  is_usable_ = false;  // the connection is not usable until all is told
  send_order(running, line, deadline);
  TaskGroup pumps(reactor_);
  if (running.out.reader) pumps.spawn(pump(running, Stream::out));
  if (running.err.reader) pumps.spawn(pump(running, Stream::err));
  int exit_code = -1;
  std::exception_ptr failure;
  try {
    exit_code = co_await await_result(deadline);
  } catch (...) {  // whatever it is, the pumps must end first
    failure = std::current_exception();
  }
  // The keeper has closed its ends, or is gone and cannot have kept them.
  running.deadline = after(std::chrono::seconds(5));
  co_await pumps.join();
  if (failure) std::rethrow_exception(failure);
  is_usable_ = true;
  co_return exit_code;
}

}  // namespace

std::string kept_name(const std::string& socket_name, std::size_t slot) {
  return fmt::format("{}.{}", socket_name, slot);
}

asio::awaitable<std::unique_ptr<Connection>> take_kept(Reactor& reactor, const KeptFolder& folder,
                                                       std::string key) {
  const std::string name = socket_name(key);
  const std::string question = keeper_protocol::kTake + key;
  for (std::size_t slot = 0; slot < kMostKept; ++slot) {
    OwnedFd keeper = std::move(folder.connect(kept_name(name, slot)).socket);
    if (!keeper || !send_message(keeper.get(), question)) continue;
    const Deadline deadline = after(kLongestAnswer);
    const std::optional<Message> answer = co_await await_message(reactor, keeper.get(), deadline);
    if (!answer || answer->bytes.front() != keeper_protocol::kYours) continue;
    co_return std::make_unique<KeptConnection>(reactor, std::move(keeper), answer->bytes.substr(1));
  }
  co_return nullptr;
}

namespace {

constexpr std::size_t kMostFds = 4;

/// Room for the descriptors of one message.
union Ancillary {
  cmsghdr header;
  std::array<char, CMSG_SPACE(kMostFds * sizeof(int))> bytes;
};

void take_fds(msghdr& message, std::vector<OwnedFd>& fds) {
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return;
  std::array<int, kMostFds> numbers{};
  const std::size_t size = header->cmsg_len - CMSG_LEN(0);
  std::memcpy(numbers.data(), CMSG_DATA(header), std::min(size, sizeof numbers));
  for (std::size_t i = 0; i < size / sizeof(int); ++i) fds.emplace_back(numbers[i]);
}

}  // namespace

Received receive_message(int socket, Message& message) {
  const ssize_t size = ::recv(socket, nullptr, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return Received::nothing;
  if (size <= 0) return Received::end;
  message.bytes.resize(static_cast<std::size_t>(size));
  message.fds.clear();
  iovec data{message.bytes.data(), message.bytes.size()};
  Ancillary ancillary{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = ancillary.bytes.data();
  header.msg_controllen = ancillary.bytes.size();
  if (::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != size) return Received::end;
  take_fds(header, message.fds);
  return Received::message;
}

asio::awaitable<std::optional<Message>> await_message(Reactor& reactor, int socket,
                                                      Deadline deadline) {
  std::optional<Waiter> waiter;  // not needed for a message that has come already
  Message message;
  for (;;) {
    const Received received = receive_message(socket, message);
    if (received == Received::message) co_return std::optional<Message>(std::move(message));
    if (received == Received::end || Clock::now() >= deadline) co_return std::nullopt;
    if (!waiter) waiter.emplace(reactor, socket);
    co_await waiter->wait(Waiter::For::readable, deadline);
  }
}

bool send_message(int socket, std::string_view bytes, std::initializer_list<int> fds) {
  iovec data{const_cast<char*>(bytes.data()), bytes.size()};
  Ancillary ancillary{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (fds.size() > 0) {
    message.msg_control = ancillary.bytes.data();
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), std::data(fds), fds.size() * sizeof(int));
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

}  // namespace dtool::ssh
