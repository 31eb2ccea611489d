// SPDX-License-Identifier: MIT
// Logging in with the keys of an ssh-agent, which may refuse, hang up or say nonsense.
#include "ssh/session/agent.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <sys/un.h>

#include <array>
#include <functional>

#include "ssh/machine/encodings.h"
#include "tests/unit/ssh/login.h"

namespace dtool::ssh {
namespace {

std::string framed_text(const std::string& text) {
  const std::uint32_t size = ::htonl(static_cast<std::uint32_t>(text.size()));
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + text;
}

/// An Ed25519 key of an agent.
class AgentKey {
 public:
  AgentKey() : key_(::EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), ::EVP_PKEY_free) {
    std::string raw(32, '\0');
    std::size_t size = raw.size();
    ::EVP_PKEY_get_raw_public_key(key_.get(), reinterpret_cast<unsigned char*>(raw.data()), &size);
    blob_ = framed_text("ssh-ed25519") + framed_text(raw);
  }
  const std::string& blob() const { return blob_; }
  std::string text() const { return to_base64(blob_); }

  /// An agent's answer to a request that this key sign `data`.
  std::string signature(const std::string& data) const {
    const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(::EVP_MD_CTX_new(),
                                                                     ::EVP_MD_CTX_free);
    std::string made(64, '\0');
    std::size_t size = made.size();
    ::EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get());
    ::EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(made.data()), &size,
                     reinterpret_cast<const unsigned char*>(data.data()), data.size());
    return '\x0e' + framed_text(framed_text("ssh-ed25519") + framed_text(made));
  }

 private:
  std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key_;
  std::string blob_;
};

sockaddr_un address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

/// Listens at a path, and answers each message of one client by `answer`, byte for byte; an empty
/// answer hangs up.
class Agent {
 public:
  using Answer = std::function<std::string(const std::string&)>;

  Agent(const std::filesystem::path& path, Answer answer) : answer_(std::move(answer)) {
    const sockaddr_un address = address_of(path);
    if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_.get(), 1) != 0) {
      throw std::runtime_error("no agent");
    }
    thread_ = std::thread([this] { serve(); });
  }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  ~Agent() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

 private:
  void serve() {
    const OwnedFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::uint32_t size = 0;
    while (client && ::recv(client.get(), &size, sizeof size, MSG_WAITALL) == sizeof size) {
      std::string message(::ntohl(size), '\0');
      if (::recv(client.get(), message.data(), message.size(), MSG_WAITALL) <= 0) return;
      const std::string answer = answer_(message);
      if (answer.empty()) return;
      for (const char each : answer) ::send(client.get(), &each, 1, MSG_NOSIGNAL);
    }
  }

  Answer answer_;
  OwnedFd listener_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::thread thread_;
};

class LogInWithAgent : public testing::Test {
 protected:
  using Texts = std::vector<std::string>;
  static constexpr char kList = 11;

  std::string listed() const {
    std::string keys;
    for (const AgentKey& each : keys_) keys += framed_text(each.blob()) + framed_text("comment");
    return framed_text('\x0c' + std::string("\0\0\0\2", 4) + keys);
  }

  std::string signed_by_key(const std::string& request) const {
    for (const AgentKey& each : keys_) {
      const std::string head = '\x0d' + framed_text(each.blob());
      if (!request.starts_with(head)) continue;
      const std::string rest = request.substr(head.size());
      EXPECT_EQ(rest.substr(rest.size() - 4), std::string(4, '\0'));
      return framed_text(each.signature(rest.substr(4, rest.size() - 8)));
    }
    ADD_FAILURE() << "no request for a signature of a listed key";
    return "";
  }

  /// What a good agent answers.
  std::string good(const std::string& message) const {
    return message == std::string(1, kList) ? listed() : signed_by_key(message);
  }

  /// Logs in with that agent; returns what was wrong, if anything.
  std::string log_in(Agent::Answer answer, const std::string& more = "") {
    server_ = std::make_unique<tests::SshServer>(rules_);
    std::filesystem::remove(log_in_.at("agent"));
    const Agent agent(log_in_.at("agent"), std::move(answer));
    const std::string text =
        tests::error_of([&] {
          log_in_.log_in(*server_, "IdentityAgent " + log_in_.at("agent").string() + "\n" + more);
        }).second;
    return text.substr(0, text.find("\nhint: "));
  }

  std::string refused_for(const std::string& problem) const {
    return "user ann was not let in; tried the agent" +
           (problem.empty() ? "" : " (" + problem + ")");
  }

  tests::LogIn log_in_;
  const tests::TemporaryVariable home_{"HOME", log_in_.folder().path().string()};
  const std::array<AgentKey, 2> keys_{};
  tests::ServerRules rules_{{keys_[1].text()}};
  std::unique_ptr<tests::SshServer> server_;
};

TEST_F(LogInWithAgent, OffersItsKeysAndSignsWithTheOneThatIsTaken) {
  EXPECT_EQ(log_in([this](const auto& message) { return good(message); }), "");
  EXPECT_EQ(server_->heard(), (Texts{"offer " + keys_[0].text(), "offer " + keys_[1].text(),
                                     "offer " + keys_[1].text(), "key " + keys_[1].text()}));
}

TEST_F(LogInWithAgent, NoKeyIsOfferedThatIsNotNamedOrWasTried) {
  log_in_.folder().write("only.pub", "ssh-ed25519 " + keys_[0].text() + "\n");
  const std::string only = "IdentitiesOnly yes\nIdentityFile " + log_in_.at("only").string() + "\n";
  EXPECT_NE(log_in([this](const auto& message) { return good(message); }, only), "");
  EXPECT_EQ(server_->heard(), (Texts{"offer " + keys_[0].text()}));
}

TEST_F(LogInWithAgent, NoKeyIsTakenThatTheServerDoesNotKnow) {
  rules_.let_in = {};
  EXPECT_EQ(log_in([this](const auto& message) { return good(message); }), refused_for(""));
}

TEST_F(LogInWithAgent, AServerThatHangsUpIsOfferedNoMore) {
  rules_ = {};
  rules_.most_refusals = 1;
  EXPECT_NE(log_in([this](const auto& message) { return good(message); }), "");
  EXPECT_EQ(server_->heard(), (Texts{"offer " + keys_[0].text()}));
}

TEST_F(LogInWithAgent, ARefusalToSignIsTold) {
  EXPECT_EQ(log_in([this](const std::string& message) {
              return message[0] == kList ? listed() : framed_text("\5");
            }),
            refused_for("it refused to sign"));
}

TEST_F(LogInWithAgent, AnAgentThatHangsUpIsTold) {
  EXPECT_EQ(log_in([](const std::string&) { return std::string(); }),
            refused_for("it closed the connection"));
}

TEST_F(LogInWithAgent, AnAnswerOfAnImpossibleLengthIsTold) {
  for (const std::string& length :
       {std::string(4, '\0'), std::string("\0\4\0\1", 4), std::string("\xff\xff\xff\xff")}) {
    EXPECT_EQ(log_in([&](const std::string&) { return length; }),
              refused_for("its answer has an impossible length"));
  }
}

TEST_F(LogInWithAgent, AnAnswerMayBeAsLongAsOpenSshsMayBe) {
  const std::string longest(256 * 1024, '\5');
  EXPECT_EQ(log_in([&](const std::string&) { return framed_text(longest); }), refused_for(""));
}

TEST_F(LogInWithAgent, AListThatIsNotWholeHasTheKeysBeforeItsEnd) {
  const std::string list = '\x0c' + std::string("\0\0\0\2", 4) + framed_text(keys_[1].blob()) +
                           framed_text("") + framed_text(keys_[0].blob()).substr(0, 20);
  EXPECT_EQ(log_in([&](const std::string& message) {
              return message[0] == kList ? framed_text(list) : good(message);
            }),
            "");
  for (const std::string& none :
       {std::string("\x0c\0\0\0", 4), std::string("\x0c\0\0\0\0", 5),
        std::string("\x0c\0\0\0\1", 5) + framed_text(keys_[1].blob()), '\x05' + list.substr(1)}) {
    EXPECT_EQ(log_in([&](const std::string&) { return framed_text(none); }), refused_for(""));
    EXPECT_EQ(server_->heard(), Texts{});
  }
}

TEST_F(LogInWithAgent, TheLastKeyNeedsNoComment) {
  const std::string list =
      '\x0c' + std::string("\0\0\0\1", 4) + framed_text(keys_[1].blob()) + framed_text("");
  EXPECT_EQ(log_in([&](const std::string& message) {
              return message[0] == kList ? framed_text(list) : good(message);
            }),
            "");
}

TEST_F(LogInWithAgent, NoKeyIsOfferedAfterTheOneThatIsTaken) {
  rules_.let_in = {keys_[0].text()};
  EXPECT_EQ(log_in([this](const auto& message) { return good(message); }), "");
  EXPECT_EQ(server_->heard(), (Texts{"offer " + keys_[0].text(), "offer " + keys_[0].text(),
                                     "key " + keys_[0].text()}));
}

TEST_F(LogInWithAgent, AKeyThatWasTriedFromItsFileIsNotOfferedAgain) {
  const std::string tried = log_in_.make_key("tried");
  const std::string list = '\x0c' + std::string("\0\0\0\2", 4) +
                           framed_text(from_base64(tried).value()) + framed_text("") +
                           framed_text(keys_[0].blob()) + framed_text("");
  EXPECT_NE(log_in([&](const std::string&) { return framed_text(list); },
                   "IdentityFile " + log_in_.at("tried").string() + "\n"),
            "");
  EXPECT_EQ(server_->heard(), (Texts{"key " + tried, "offer " + keys_[0].text()}));
}

TEST_F(LogInWithAgent, AKeyIsNamedByACertificateFileToo) {
  log_in_.folder().write("named.pub", "ssh-ed25519 " + keys_[0].text() + "\n");
  EXPECT_NE(
      log_in([this](const auto& message) { return good(message); },
             "IdentitiesOnly yes\nCertificateFile " + log_in_.at("named.pub").string() + "\n"),
      "");
  EXPECT_EQ(server_->heard(), (Texts{"offer " + keys_[0].text()}));
}

TEST_F(LogInWithAgent, ASignatureThatDoesNotFitIsNotWaitedFor) {
  const std::string signature = '\x0e' + std::string(256 * 1024 - 1, 's');
  EXPECT_EQ(log_in([&](const std::string& message) {
              return message[0] == kList ? listed() : framed_text(signature);
            }),
            refused_for(""));
}

TEST_F(LogInWithAgent, AnAgentThatManyWaitForIsWaitedForToo) {
  const std::string tried = log_in_.make_key("tried");
  server_ = std::make_unique<tests::SshServer>(rules_);
  const sockaddr_un address = address_of(log_in_.at("agent"));
  const auto* place = reinterpret_cast<const sockaddr*>(&address);
  const auto new_socket = [] {
    return OwnedFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  };
  OwnedFd listener = new_socket();
  ASSERT_EQ(::bind(listener.get(), place, sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  std::vector<OwnedFd> waiting;
  do {
    waiting.push_back(new_socket());
  } while (::connect(waiting.back().get(), place, sizeof address) == 0);
  std::thread others([&] {  // leave once the log-in has come to the agent
    while (server_->heard().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    listener.reset();
  });
  const std::string text =
      tests::error_of([&] {
        log_in_.log_in(*server_, "IdentityAgent " + log_in_.at("agent").string() +
                                     "\nIdentityFile " + log_in_.at("tried").string() + "\n");
      }).second;
  others.join();
  EXPECT_TRUE(text.starts_with("user ann was not let in; tried " + log_in_.at("tried").string() +
                               ", the agent (Connection refused)"))
      << text;
}

TEST_F(LogInWithAgent, ASocketWithTooLongANameIsTold) {
  const std::string name = log_in_.at(std::string(120, 'a')).string();
  server_ = std::make_unique<tests::SshServer>(rules_);
  const auto error =
      tests::error_of([&] { log_in_.log_in(*server_, "IdentityAgent " + name + "\n"); });
  EXPECT_TRUE(error.second.starts_with(refused_for("the name of its socket is too long")))
      << error.second;
  const std::string begin = log_in_.at("").string();
  const std::string longest =
      begin + std::string(sizeof sockaddr_un{}.sun_path - 1 - begin.size(), 'a');
  for (const std::string& path : {longest, longest + "a"}) {
    const auto told =
        tests::error_of([&] { log_in_.log_in(*server_, "IdentityAgent " + path + "\n"); });
    EXPECT_TRUE(told.second.starts_with(refused_for(
        path == longest ? "No such file or directory" : "the name of its socket is too long")))
        << told.second;
  }
}

TEST(AgentPatienceTest, EndsTwoMinutesAfterTheQuestionOrTheLastAnswerToAnybody) {
  AgentPatience::Times all;
  AgentPatience patience(all);
  const Clock::time_point start = Clock::now();
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  using Next = AgentPatience::Next;
  all.told = start + seconds(1000);
  patience.asked(start);
  EXPECT_EQ(patience.next(start + seconds(120) - milliseconds(1)), Next::wait);
  EXPECT_EQ(patience.next(start + seconds(120)), Next::give_up);
  AgentPatience other(all);
  other.answered(start + seconds(50));
  EXPECT_EQ(patience.next(start + seconds(170) - milliseconds(1)), Next::wait);
  EXPECT_EQ(patience.next(start + seconds(170)), Next::give_up);
}

TEST(AgentPatienceTest, IsToldAfterASecondAndToAllQuestionsOnceInHalfAMinute) {
  AgentPatience::Times all;
  AgentPatience first(all), second(all);
  const Clock::time_point start = Clock::now();
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  using Next = AgentPatience::Next;
  first.asked(start);
  second.asked(start);
  EXPECT_EQ(first.next(start + milliseconds(999)), Next::wait);
  EXPECT_EQ(first.next(start + seconds(1)), Next::tell);
  EXPECT_EQ(second.next(start + seconds(31) - milliseconds(1)), Next::wait);
  EXPECT_EQ(second.next(start + seconds(31)), Next::tell);
  EXPECT_EQ(first.next(start + seconds(32)), Next::wait);
}

TEST(AgentPatienceTest, IsLookedAtOnceItIsTimeToTellAndThenEachSecond) {
  AgentPatience::Times all;
  AgentPatience patience(all);
  const Clock::time_point start = Clock::now();
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  patience.asked(start);
  EXPECT_EQ(patience.next_look(start), start + seconds(1));
  EXPECT_EQ(patience.next_look(start + milliseconds(999)), start + seconds(1));
  EXPECT_EQ(patience.next_look(start + seconds(1)), start + seconds(2));
  EXPECT_EQ(patience.next_look(start + seconds(5)), start + seconds(6));
}

}  // namespace
}  // namespace dtool::ssh
