// SPDX-License-Identifier: MIT
// What a server has to show before it is trusted.
#include "ssh/session/host_key.h"
#include "ssh/fanout/fleet.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <ctime>

#include "ssh/host_error.h"
#include "ssh/machine/encodings.h"
#include "ssh/session/session.h"
#include "tests/unit/ssh/login.h"

namespace dtool::ssh {
namespace {

TEST(HostKey, OfAServerThatShowedNoneIsNotTrusted) {
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
  const OwnedFd server(sockets[1]);
  Reactor reactor;
  KnownHosts known_hosts;
  Session session(reactor, Endpoint{}, OwnedFd(sockets[0]), known_hosts);
  EXPECT_FALSE(session.is_still_known(known_hosts));
  try {
    session.require_known_host(known_hosts);
    FAIL() << "it is trusted";
  } catch (const HostError& error) {
    EXPECT_EQ(error.failure(), Failure::unreachable);
    EXPECT_STREQ(error.what(), "the server presented no host key");
  }
}

constexpr const char* kOtherKey =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEMtKFlkSfqGob2CtTT+En6Xj7zSm5J/DR4iKmHvX5db";

class ShownKey : public testing::Test {
 protected:
  /// What a log-in says of the server's key with that text in known_hosts. The keys there are the
  /// server's own, or another.
  std::string judged(const std::string& known_hosts) {
    std::filesystem::remove(known_);
    if (!known_hosts.empty()) log_in_.folder().write("known_hosts", known_hosts);
    Connector connector(reactor_, log_in_.options(server_, "IdentityFile none\n"));
    return tests::error_of([&] { tests::run_in(reactor_, connector.log_in(parse_host("gpu1"))); })
        .second;
  }

  std::string line(const std::string& key) const { return name_ + " " + key + "\n"; }

  std::vector<HostKey> scan(const std::vector<std::string>& names, const std::string& more = "",
                            Program program = Program::libssh) {
    std::vector<Host> hosts;
    for (const std::string& name : names) hosts.push_back(parse_host(name));
    ConnectOptions options = log_in_.options(server_, more);
    options.program = program;
    options.width = 1;
    return scan_host_keys(hosts, options);
  }

  tests::LogIn log_in_;
  tests::SshServer server_;
  Reactor reactor_;
  const std::string name_ = "[127.0.0.1]:" + std::to_string(server_.port());
  const std::string known_ = log_in_.at("known_hosts").string();
  const std::string shown_ = "the host key ssh-ed25519 " + fingerprint();

  std::string fingerprint() const {
    const std::string blob = read_key_blob(server_.key()).value();
    std::string digest(32, '\0');
    ::EVP_Digest(blob.data(), blob.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr,
                 ::EVP_sha256(), nullptr);
    const std::string text = "SHA256:" + to_base64(digest);
    return text.substr(0, text.find('='));
  }
};

TEST_F(ShownKey, IsRefusedWithTheReason) {
  EXPECT_EQ(judged(""), "the host key is not in " + known_ +
                            "\nhint: look at it and accept it with: dtool trust --runs_on {hosts}");
  EXPECT_EQ(judged("\n" + line(kOtherKey)),
            shown_ + " is not the one in " + known_ +
                ":2\nhint: someone may be listening in; if you know that the host was set up anew: "
                "ssh-keygen -R '" +
                name_ + "' -f " + known_);
  EXPECT_EQ(judged("@revoked " + line(server_.key())),
            shown_ + " is marked as revoked in " + known_ +
                ":1\nhint: the server may not be the real host; the host needs a new key");
  EXPECT_EQ(judged("@cert-authority " + line(server_.key())),
            "the host is known by a certificate authority only (" + known_ +
                ":1), which libssh cannot ask\nhint: the ssh program can: --ssh_program auto");
  EXPECT_EQ(judged(line("ssh-ed25519 =")),
            known_ +
                ":1 cannot be read, and may be about the host\nhint: mend that line or take it "
                "out");
  std::filesystem::remove(known_);
  ASSERT_EQ(::mkfifo(known_.c_str(), 0600), 0);
  Connector connector(reactor_, log_in_.options(server_, ""));
  EXPECT_EQ(tests::error_of([&] {
              tests::run_in(reactor_, connector.log_in(parse_host("gpu1")));
            }).second,
            known_ +
                " cannot be read, and may be about the host\nhint: make it readable for you, or "
                "leave it out");
}

TEST_F(ShownKey, IsReportedByAScan) {
  const HostKey unknown = scan({"gpu1"}).front();
  EXPECT_EQ(unknown.state, HostKeyState::unknown);
  EXPECT_EQ(unknown.host, parse_host("gpu1"));
  EXPECT_EQ(unknown.type, "ssh-ed25519");
  EXPECT_EQ(unknown.fingerprint, fingerprint());
  EXPECT_EQ(unknown.line, line(server_.key()));
  EXPECT_EQ(unknown.known_hosts, known_);
  EXPECT_EQ(unknown.error + unknown.hint, "");
  log_in_.folder().write("known_hosts", line(server_.key()));
  const HostKey known = scan({"gpu1"}).front();
  EXPECT_EQ(known.state, HostKeyState::known);
  EXPECT_EQ(known.error, "");
  log_in_.folder().write("known_hosts", line(kOtherKey));
  const HostKey changed = scan({"gpu1"}).front();
  EXPECT_EQ(changed.state, HostKeyState::changed);
  EXPECT_TRUE(changed.error.starts_with(shown_)) << changed.error;
  EXPECT_TRUE(changed.hint.starts_with("someone may be listening in")) << changed.hint;
}

TEST_F(ShownKey, OfEachHostIsReportedInTheirOrder) {
  const auto keys =
      scan({"gpu1", "gone", "gpu2", "local"}, "Host gone\nHostName 127.0.0.1\nPort 1\nHost *\n");
  ASSERT_EQ(keys.size(), 4u);
  EXPECT_EQ(keys[0].state, HostKeyState::unknown);
  EXPECT_EQ(keys[1].state, HostKeyState::unreachable);
  EXPECT_EQ(keys[1].error, "cannot connect to port 1: Connection refused");
  EXPECT_EQ(keys[2].state, HostKeyState::unknown) << "two hosts at one address share their key";
  EXPECT_EQ(keys[3].state, HostKeyState::known);
  EXPECT_EQ(keys[3].line, "") << "nobody is asked";
  EXPECT_TRUE(scan({}).empty());
}

TEST_F(ShownKey, IsAskedForByTheSshProgramWhereLibsshCannotAndWhereTheUserSaysSo) {
  const tests::TemporaryVariable path("PATH", log_in_.folder().path().string());  // has no ssh
  const auto state = [&](Program program, const std::string& more) {
    return scan({"gpu1"}, more, program).front().state;
  };
  EXPECT_EQ(state(Program::automatic, ""), HostKeyState::unknown);
  EXPECT_EQ(state(Program::libssh, ""), HostKeyState::unknown);
  EXPECT_EQ(state(Program::ssh, ""), HostKeyState::unreachable);
  EXPECT_EQ(state(Program::automatic, "SetEnv A=b\n"), HostKeyState::unreachable);
  log_in_.folder().write("known_hosts", "@cert-authority " + line(server_.key()));
  EXPECT_EQ(state(Program::automatic, ""), HostKeyState::unreachable);
  EXPECT_EQ(state(Program::libssh, ""), HostKeyState::certified);
}

TEST_F(ShownKey, OfAnotherHostWithTheSameNameOnRecordIsDoubtful) {
  const tests::SshServer other;
  const auto keys = scan({"gpu1", "gpu2", "gpu3"},
                         "Host gpu2\nPort " + std::to_string(other.port()) +
                             "\nHost gpu3\nHostKeyAlias moth\nHost *\nHostKeyAlias both\n");
  const std::string error =
      "hosts gpu1 and gpu2 have one name in " + known_ + ", and different keys";
  for (const HostKey& key : {keys[0], keys[1]}) {
    EXPECT_EQ(key.state, HostKeyState::doubtful);
    EXPECT_EQ(key.error, error);
    EXPECT_EQ(key.hint, "hosts that share an address or a HostKeyAlias must share their key");
  }
  EXPECT_EQ(keys[2].state, HostKeyState::unknown);
}

TEST_F(ShownKey, IsLookedUpAgainWhenAFileHasChanged) {
  log_in_.folder().write("known_hosts", line(server_.key()));
  Connector connector(reactor_, log_in_.options(server_, ""));
  const auto session = tests::run_in(reactor_, connector.greet(parse_host("gpu1")));
  KnownHosts& known = connector.known_hosts();
  EXPECT_EQ(session->host_key(), "ssh-ed25519 " + fingerprint());
  const std::time_t later = std::time(nullptr) + 10;
  EXPECT_TRUE(session->is_still_known(known));
  EXPECT_TRUE(session->is_still_known(known, later));
  EXPECT_TRUE(session->is_still_known(known, later));
  log_in_.folder().write("known_hosts", line(kOtherKey) + "\n");
  EXPECT_FALSE(session->is_still_known(known, later));
  EXPECT_FALSE(session->is_still_known(known, later));
  log_in_.folder().write("known_hosts", line(server_.key()));
  EXPECT_TRUE(session->is_still_known(known, later));
}

TEST(KnownHostsStamp, IsOfAllFilesAndOfNoneThatIsYoung) {
  const tests::TemporaryFolder folder;
  Endpoint endpoint;
  EXPECT_EQ(known_hosts_stamp(endpoint, 0), "");
  endpoint.known_hosts_files = {"/dev/null", folder.path() / "none", folder.write("known", "x")};
  struct stat status {};
  ASSERT_EQ(::stat((folder.path() / "known").c_str(), &status), 0);
  EXPECT_EQ(known_hosts_stamp(endpoint, status.st_ctim.tv_sec + 1), "");
  const std::string stamp = known_hosts_stamp(endpoint, status.st_ctim.tv_sec + 2);
  EXPECT_NE(stamp, "");
  EXPECT_EQ(known_hosts_stamp(endpoint, status.st_ctim.tv_sec + 3), stamp);
  folder.write("none", "y");
  EXPECT_NE(known_hosts_stamp(endpoint, status.st_ctim.tv_sec + 100), stamp);
}

class AddToKnownHosts : public testing::Test {
 protected:
  HostKey key(const std::string& line, const std::string& file = ".ssh/known_hosts") const {
    HostKey key;
    key.state = HostKeyState::unknown;
    key.line = line;
    key.known_hosts = folder_.path() / file;
    return key;
  }

  static unsigned mode_of(const std::filesystem::path& file) {
    struct stat status {};
    return ::stat(file.c_str(), &status) == 0 ? status.st_mode & 07777U : 0;
  }

  static std::string error_of(const HostKey& key) {
    try {
      add_to_known_hosts({key});
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }

  const tests::TemporaryFolder folder_;
};

TEST_F(AddToKnownHosts, MakesWhatIsMissingForTheUserAlone) {
  const mode_t before = ::umask(0);
  add_to_known_hosts({key("a\n"), key("b\n"), key("a\n"), key("c\n", "other")});
  ::umask(before);
  EXPECT_EQ(folder_.read(".ssh/known_hosts"), "a\nb\n");
  EXPECT_EQ(folder_.read("other"), "c\n");
  EXPECT_EQ(mode_of(folder_.path() / ".ssh"), 0700u);
  EXPECT_EQ(mode_of(folder_.path() / ".ssh/known_hosts"), 0600u);
}

TEST_F(AddToKnownHosts, AppendsToWhatIsThere) {
  for (const std::string text : {"", "one\n", "one", "1"}) {
    folder_.write(".ssh/known_hosts", text);
    add_to_known_hosts({key("a\n")});
    const std::string before = text.empty() || text.ends_with('\n') ? text : text + "\n";
    EXPECT_EQ(folder_.read(".ssh/known_hosts"), before + "a\n");
  }
}

TEST_F(AddToKnownHosts, TellsWhyItCannot) {
  const std::string here = folder_.path().string();
  EXPECT_EQ(error_of(key("a\n", "no/such/folder")),
            "cannot write " + here + "/no/such/folder: No such file or directory");
  ASSERT_EQ(::mkfifo((here + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of(key("a\n", "pipe")), "cannot write " + here + "/pipe: it is no regular file");
  HostKey nowhere = key("a\n");
  nowhere.known_hosts = "/dev/null";
  const std::string how =
      "the SSH configuration keeps no host keys (UserKnownHostsFile /dev/null)%name the file that "
      "counts: UserKnownHostsFile ~/.ssh/known_hosts above that line in the SSH configuration, or "
      "in each command --ssh_cmd 'ssh -o UserKnownHostsFile=~/.ssh/known_hosts'";
  const std::string before = how.substr(0, how.find('%')), after = how.substr(how.find('%') + 1);
  EXPECT_EQ(error_of(nowhere), "no key was added: " + before + "\nhint: " + after);
  EXPECT_EQ(hint_at_trust("/dev/null"),
            before + ": " + after + "; then: dtool trust --runs_on {hosts}");
  nowhere.known_hosts = "/dev/full";
  EXPECT_EQ(error_of(nowhere), "cannot write /dev/full: it is no regular file");
}

}  // namespace
}  // namespace dtool::ssh
