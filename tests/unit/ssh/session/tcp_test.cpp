// SPDX-License-Identifier: MIT
// Connecting, and the first bytes of servers of every kind, on loopback.
#include "ssh/session/connector.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>

#include "ssh/host_error.h"
#include "ssh/machine/fd_bytes.h"
#include "tests/unit/run_in.h"

namespace dtool::ssh {
namespace {

using std::chrono::milliseconds;
using tests::run_in;

/// A server on loopback that accepts one connection, says each text after a pause, and hangs up or
/// keeps silent.
class Server {
 public:
  enum class Then { hang_up, reset, keep_silent };

  explicit Server(Reactor& reactor) : reactor_(reactor) {
    listener_ = OwnedFd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listener_.get(), 4) != 0 ||
        ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("no server on loopback");
    }
    port_ = ::ntohs(address.sin_port);
  }

  std::uint16_t port() const { return port_; }
  void stop_listening() { listener_.reset(); }

  asio::awaitable<void> serve(std::vector<std::string> texts, Then then) {
    co_await wait_for_client();
    connection_ =
        OwnedFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    for (const std::string& text : texts) {
      co_await reactor_.sleep(milliseconds(30));
      const std::string_view view = text;
      co_await write_all(reactor_, connection_.get(), view, kNoDeadline);
    }
    if (then == Then::reset) {
      const linger at_once{1, 0};
      ::setsockopt(connection_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    if (then != Then::keep_silent) connection_.reset();
  }

 private:
  asio::awaitable<void> wait_for_client() {
    Waiter waiter(reactor_, listener_.get());
    co_await waiter.wait(Waiter::For::readable, kNoDeadline);
  }

  Reactor& reactor_;
  OwnedFd listener_;
  OwnedFd connection_;
  std::uint16_t port_ = 0;
};

sockaddr_in address_of(const char* text, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = ::htons(port);
  ::inet_pton(AF_INET, text, &address.sin_addr);
  return address;
}

/// A place on loopback where the kernel answers nobody: more wait there than its server takes.
class DeadPlace {
 public:
  DeadPlace(const char* text, std::uint16_t port) : listener_(new_socket()) {
    const sockaddr_in address = address_of(text, port);
    const auto* place = reinterpret_cast<const sockaddr*>(&address);
    if (::bind(listener_.get(), place, sizeof address) != 0 || ::listen(listener_.get(), 0) != 0)
      throw std::runtime_error("no second server on loopback");
    for (bool is_answered = true; is_answered;) {
      const OwnedFd& next = waiting_.emplace_back(new_socket());
      ::connect(next.get(), place, sizeof address);
      pollfd state{next.get(), POLLOUT, 0};
      is_answered = ::poll(&state, 1, 100) > 0;
    }
  }

 private:
  static OwnedFd new_socket() {
    return OwnedFd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  }

  OwnedFd listener_;
  std::vector<OwnedFd> waiting_;
};

// What getaddrinfo, below, knows of.
constexpr const char* kDeadFirst = "dead-first.invalid";  ///< has two addresses
constexpr const char* kSlow = "slow.invalid";             ///< is not looked up before slow_may_end
std::atomic<bool> slow_may_end = false;
std::atomic<int> look_ups = 0;  ///< of names

constexpr auto kLong = std::chrono::seconds(30);

class Tcp : public testing::Test {
 protected:
  asio::awaitable<Greeting> greeted(std::vector<std::string> texts, Server::Then then,
                                    milliseconds patience) {
    TaskGroup group(reactor);
    group.spawn(server.serve(texts, then));
    const Deadline connect_deadline = after(kLong);
    const OwnedFd fd = co_await connect_tcp(reactor, "127.0.0.1", server.port(), connect_deadline);
    Greeting greeting = Greeting::dropped;
    std::exception_ptr error;
    try {
      const Deadline deadline = after(patience);
      greeting = co_await await_greeting(reactor, fd.get(), deadline);
    } catch (const HostError&) {
      error = std::current_exception();
    }
    co_await group.join();
    if (error) std::rethrow_exception(error);
    co_return greeting;
  }

  Greeting greeting(std::vector<std::string> texts, Server::Then then,
                    milliseconds patience = kLong) {
    return run_in(reactor, greeted(std::move(texts), then, patience));
  }

  Failure failure_of(asio::awaitable<OwnedFd> connecting) {
    try {
      run_in(reactor, std::move(connecting));
    } catch (const HostError& error) {
      message = error.what();
      hint = error.hint();
      return error.failure();
    }
    return Failure::none;
  }

  Reactor reactor;
  Server server{reactor};
  std::string message, hint;
};

TEST_F(Tcp, AGreetingCame) {
  EXPECT_EQ(greeting({"SSH-2.0-OpenSSH_9.2\r\n"}, Server::Then::keep_silent), Greeting::came);
}

TEST_F(Tcp, AGreetingMayComeInPieces) {
  EXPECT_EQ(greeting({"S", "SH", "-2.0-x\r\n"}, Server::Then::keep_silent), Greeting::came);
}

TEST_F(Tcp, LinesMayComeBeforeTheGreeting) {
  EXPECT_EQ(
      greeting({"Welcome\r\n", "to SSH-land\r\n", "SSH-2.0-x\r\n"}, Server::Then::keep_silent),
      Greeting::came);
}

TEST_F(Tcp, ALongTextBeforeTheGreetingIsLeftToTheSshLibrary) {
  EXPECT_EQ(greeting({std::string(4000, 'x')}, Server::Then::keep_silent), Greeting::came);
}

TEST_F(Tcp, AServerThatClosesAtOnceHasDroppedTheConnection) {
  EXPECT_EQ(greeting({}, Server::Then::hang_up), Greeting::dropped);
}

TEST_F(Tcp, AServerThatResetsTheConnectionHasDroppedIt) {
  EXPECT_EQ(greeting({""}, Server::Then::reset), Greeting::dropped);
}

TEST_F(Tcp, AServerBeyondItsMaxStartupsHasDroppedTheConnection) {
  EXPECT_EQ(greeting({"Exceeded MaxStartups\r\n"}, Server::Then::hang_up), Greeting::dropped);
}

TEST_F(Tcp, AServerThatSaysNothingIsNotWaitedForBeyondTheDeadline) {
  EXPECT_THROW(greeting({}, Server::Then::keep_silent, milliseconds(100)), HostError);
}

TEST_F(Tcp, AServerThatSpeaksSomethingElseIsNotWaitedForBeyondTheDeadline) {
  try {
    greeting({"220 mail ESMTP\r\n"}, Server::Then::keep_silent, milliseconds(100));
    FAIL() << "it was taken for an SSH server";
  } catch (const HostError& error) {
    EXPECT_EQ(error.failure(), Failure::connect_timed_out);
    EXPECT_STREQ(error.what(), "connected, but no SSH greeting came in time");
  }
}

asio::awaitable<std::string> first_line(Reactor& reactor, Server& server) {
  TaskGroup group(reactor);
  std::vector<std::string> texts = {"SSH-2.0-x\r\n"};
  group.spawn(server.serve(texts, Server::Then::hang_up));
  const Deadline deadline = after(kLong);
  const OwnedFd fd = co_await connect_tcp(reactor, "localhost", server.port(), deadline);
  co_await await_greeting(reactor, fd.get(), deadline);
  std::string text;
  std::function<void(std::string_view)> on_bytes = [&text](std::string_view bytes) {
    text += bytes;
  };
  co_await read_all(reactor, fd.get(), on_bytes, &deadline);
  co_await group.join();
  co_return text;
}

TEST_F(Tcp, TheGreetingIsLeftUnreadAndNamesAreResolved) {
  EXPECT_EQ(run_in(reactor, first_line(reactor, server)), "SSH-2.0-x\r\n");
}

TEST_F(Tcp, ARefusedConnectionIsUnreachable) {
  server.stop_listening();
  const Deadline deadline = after(kLong);
  EXPECT_EQ(failure_of(connect_tcp(reactor, "127.0.0.1", server.port(), deadline)),
            Failure::unreachable);
  EXPECT_EQ(message,
            "cannot connect to port " + std::to_string(server.port()) + ": Connection refused");
}

TEST_F(Tcp, ADeadFirstAddressLeavesTimeForTheNext) {
  const DeadPlace dead("127.0.0.2", server.port());
  const Deadline deadline = after(std::chrono::seconds(2));
  EXPECT_EQ(failure_of(connect_tcp(reactor, kDeadFirst, server.port(), deadline)), Failure::none)
      << message;
  EXPECT_LT(Clock::now(), deadline);
}

TEST_F(Tcp, AConnectionNoticesAPeerThatVanished) {
  const OwnedFd fd =
      run_in(reactor, connect_tcp(reactor, "127.0.0.1", server.port(), after(kLong)));
  const auto option = [&fd](int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    ::getsockopt(fd.get(), level, name, &value, &size);
    return value;
  };
  EXPECT_EQ(option(IPPROTO_TCP, TCP_NODELAY), 1);
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPIDLE), 15);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPINTVL), 5);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPCNT), 3);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_USER_TIMEOUT), 30'000);
}

TEST_F(Tcp, APlaceThatDoesNotAnswerIsNotWaitedForBeyondTheDeadline) {
  const DeadPlace dead("127.0.0.3", server.port());
  const Deadline deadline = after(milliseconds(50));
  EXPECT_EQ(failure_of(connect_tcp(reactor, "127.0.0.3", server.port(), deadline)),
            Failure::connect_timed_out);
  EXPECT_EQ(message, "no answer from port " + std::to_string(server.port()) + " in time");
  EXPECT_EQ(hint,
            "is the host up and its SSH port open? --connect_timeout sets how long dtool waits");
}

TEST_F(Tcp, ASmallPortMayHaveBeenMeantAsANumberOfProcesses) {
  for (const std::uint16_t port : {1, 64, 65}) {
    EXPECT_EQ(failure_of(connect_tcp(reactor, "127.0.0.1", port, after(kLong))),
              Failure::unreachable);
    EXPECT_EQ(message, "cannot connect to port " + std::to_string(port) + ": Connection refused");
    const std::string number = std::to_string(port);
    EXPECT_EQ(hint, port == 65 ? "is an SSH server running there, on this port?"
                               : "what follows ':' is the port here; a number of processes goes "
                                 "into --nproc_per_node " +
                                     number + ", or slots=" + number + " in a hostfile");
  }
}

TEST_F(Tcp, AddressesOfAnotherFamilyAreNotTaken) {
  const auto failure = [this](const char* address, AddressFamily family) {
    return failure_of(connect_tcp(reactor, address, server.port(), after(kLong), family));
  };
  EXPECT_EQ(failure("127.0.0.1", AddressFamily::inet), Failure::none);
  EXPECT_EQ(failure("127.0.0.1", AddressFamily::inet6), Failure::unreachable);
  EXPECT_TRUE(message.starts_with("cannot resolve 127.0.0.1: ")) << message;
  EXPECT_EQ(failure("::1", AddressFamily::inet), Failure::unreachable);
  EXPECT_TRUE(message.starts_with("cannot resolve ::1: ")) << message;
}

TEST_F(Tcp, AGreetingIsLookedForInTheFirst256Bytes) {
  EXPECT_EQ(greeting({std::string(256, 'x')}, Server::Then::keep_silent), Greeting::came);
  EXPECT_THROW(greeting({std::string(255, 'x')}, Server::Then::keep_silent, milliseconds(150)),
               HostError);
}

TEST_F(Tcp, AnAddressIsNotLookedUpAsANameIs) {
  const int before = look_ups;
  EXPECT_EQ(failure_of(connect_tcp(reactor, "127.0.0.1", server.port(), after(kLong))),
            Failure::none);
  EXPECT_EQ(look_ups, before);
  EXPECT_EQ(failure_of(connect_tcp(reactor, "localhost", server.port(), after(kLong))),
            Failure::none);
  EXPECT_EQ(look_ups, before + 1);
}

TEST_F(Tcp, ANameThatIsNotResolvedIsNotWaitedForBeyondTheDeadline) {
  slow_may_end = false;
  EXPECT_EQ(failure_of(connect_tcp(reactor, kSlow, server.port(), after(milliseconds(20)))),
            Failure::connect_timed_out);
  EXPECT_EQ(message, "the name slow.invalid was not resolved in time");
  slow_may_end = true;
}

TEST_F(Tcp, ANameThatIsResolvedLateIsWaitedForWithinTheDeadline) {
  slow_may_end = false;
  asio::steady_timer later(reactor.context(), milliseconds(20));
  later.async_wait([](boost::system::error_code) { slow_may_end = true; });
  EXPECT_EQ(failure_of(connect_tcp(reactor, kSlow, server.port(), after(kLong))), Failure::none)
      << message;
}

TEST(ConnectError, HasAHintThatFitsIt) {
  const auto hint = [](int error, std::uint16_t port = 2222) {
    const HostError told = connect_error(port, error);
    EXPECT_EQ(told.failure(),
              error == ETIMEDOUT ? Failure::connect_timed_out : Failure::unreachable);
    return told.hint().substr(0, told.hint().find(','));
  };
  EXPECT_EQ(hint(ECONNREFUSED), "is an SSH server running there");
  EXPECT_EQ(hint(EHOSTUNREACH), "is the host up");
  EXPECT_EQ(hint(ENETUNREACH), "is the host up");
  EXPECT_EQ(hint(EACCES), "");
  EXPECT_EQ(hint(ETIMEDOUT).substr(0, 38), "is the host up and its SSH port open? ");
  EXPECT_EQ(hint(ECONNREFUSED, 22), "is an SSH server running there");
  EXPECT_EQ(hint(ETIMEDOUT, 64),
            "what follows ':' is the port here; a number of processes goes into "
            "--nproc_per_node 64");
  EXPECT_STREQ(connect_error(4, ETIMEDOUT).what(),
               "cannot connect to port 4: Connection timed out");
}

TEST_F(Tcp, ANameThatNobodyKnowsIsUnreachable) {
  const Deadline deadline = after(kLong);
  const Failure failure = failure_of(connect_tcp(reactor, "no-such-host.invalid", 22, deadline));
  // Without an answer of any name server the deadline would say it; no test needs a network for it.
  EXPECT_TRUE(failure == Failure::unreachable || failure == Failure::connect_timed_out);
  EXPECT_NE(message.find("no-such-host.invalid"), std::string::npos) << message;
}

}  // namespace
}  // namespace dtool::ssh

/// The system's, which knows two names more.
extern "C" int getaddrinfo(const char* name, const char* port, const addrinfo* hints,
                           addrinfo** found) {
  static const auto real =
      reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const bool is_numeric = hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0;
  const std::string_view asked = name == nullptr || is_numeric ? "" : name;
  if (!asked.empty()) ++dtool::ssh::look_ups;
  if (asked == dtool::ssh::kSlow) {
    while (!dtool::ssh::slow_may_end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return real("127.0.0.1", port, hints, found);
  }
  if (asked != dtool::ssh::kDeadFirst) return real(name, port, hints, found);
  const int error = real("127.0.0.2", port, hints, found);
  return error != 0 ? error : real("127.0.0.1", port, hints, &(*found)->ai_next);
}
