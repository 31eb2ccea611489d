// SPDX-License-Identifier: MIT
// Random known_hosts files, judged here and by ssh itself, which meets a real sshd through a pipe:
// the verdicts must agree. DTOOL_PEER_ROUNDS asks for more rounds, DTOOL_PEER_SEED for others.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ssh/keys/known_hosts.h"
#include "ssh/machine/files.h"
#include "ssh/quote.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

using State = HostKeyState;

constexpr const char* kSshd = "/usr/sbin/sshd";

unsigned number(const char* variable, unsigned otherwise) {
  const char* value = std::getenv(variable);
  return value == nullptr ? otherwise : static_cast<unsigned>(std::stoul(value));
}

/// All that a shell line prints, on both streams.
std::string output_of(const std::string& line) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen((line + " 2>&1").c_str(), "r"), pclose);
  std::string text;
  for (int c; (c = fgetc(pipe.get())) != EOF;) text += static_cast<char>(c);
  return text;
}

/// How a host is named.
struct Target {
  std::string name;
  std::uint16_t port;
  std::string alias;
};

/// A server with two keys, for which no port is needed: each ssh starts its own.
class Server {
 public:
  Server() {
    if (::geteuid() == 0) std::filesystem::create_directories("/run/sshd");  // root's sshd wants it
    for (const std::string type : {"ed25519", "ecdsa"}) {
      keys_[type] = make_key("host_" + type, type);
      config_ += fmt::format("HostKey {}\n", (folder_.path() / ("host_" + type)).string());
    }
    other_ = make_key("other", "ed25519");
    other_ecdsa_ = make_key("other_ecdsa", "ecdsa");
    folder_.write("sshd_config", config_ + "UsePAM no\nPidFile none\nStrictModes no\n");
  }

  std::string key(const std::string& type) const { return keys_.at(type); }
  std::string other() const { return other_; }
  std::string other_ecdsa() const { return other_ecdsa_; }

  std::string says(const Target& target, const std::vector<std::string>& files) const {
    const auto path = [this](const std::string& name) { return (folder_.path() / name).string(); };
    for (std::size_t i = 0; i < files.size(); ++i)
      folder_.write(fmt::format("known{}", i), files[i]);
    std::vector<std::string> words = {
        "ssh",
        "-F",
        "none",
        "-p",
        std::to_string(target.port),
        "-o",
        "StrictHostKeyChecking=yes",
        "-o",
        "BatchMode=yes",
        "-o",
        "PreferredAuthentications=none",
        "-o",
        fmt::format("ProxyCommand={} -i -f {}", kSshd, path("sshd_config")),
        "-o",
        fmt::format("UserKnownHostsFile={} {}", path("known0"), path("known1")),
        "-o",
        fmt::format("GlobalKnownHostsFile={} {}", path("known2"), path("none"))};
    if (!target.alias.empty()) words.insert(words.end(), {"-o", "HostKeyAlias=" + target.alias});
    words.insert(words.end(), {"somebody@" + target.name, "true"});
    return output_of(quote_all(words));
  }

  /// What dtool makes of the key that it would have been shown.
  State ours(const Target& target) const {
    Endpoint endpoint;
    endpoint.key_name = target.alias.empty() ? target.name : target.alias;
    endpoint.key_port = target.alias.empty() ? target.port : 22;
    for (const char* file : {"known0", "known1", "known2", "none"})
      endpoint.known_hosts_files.push_back(folder_.path() / file);
    KnownHosts known;
    for (const std::string& algorithm : key_algorithms(known.types_of(endpoint))) {
      for (const auto& [type, text] : keys_) {
        if (text.starts_with(algorithm + " "))
          return known.judge(endpoint, read_key_blob(text).value()).state;
      }
    }
    return State::unreachable;
  }

 private:
  std::string make_key(const std::string& file, const std::string& type) {
    const std::string path = (folder_.path() / file).string();
    output_of(quote_all({"ssh-keygen", "-q", "-t", type, "-N", "", "-C", "", "-f", path}));
    std::string text = read_file(path + ".pub");
    return text.substr(0, text.find('\n'));
  }

  tests::TemporaryFolder folder_;
  std::map<std::string, std::string> keys_;
  std::string other_, other_ecdsa_, config_;
};

State state_in(const std::string& said) {
  const auto holds = [&said](const char* words) { return said.find(words) != said.npos; };
  if (holds("REVOKED HOST KEY")) return State::revoked;
  if (holds("IDENTIFICATION HAS CHANGED")) return State::changed;
  if (holds("host key is known for")) return State::unknown;
  return holds("Permission denied") ? State::known : State::unreachable;
}

/// Files whose lines are about gpu7 more often than not.
class KnownHostsWriter {
 public:
  KnownHostsWriter(const Server& server, unsigned seed) : server_(server), random_(seed) {}

  std::vector<std::string> write() {
    std::vector<std::string> files(3);
    for (std::string& file : files) {
      for (std::size_t left = random_() % 4; left > 0; --left) file += line();
    }
    return files;
  }

  bool has_unreadable_line() const { return has_unreadable_line_; }
  bool has_unclear_marker() const { return has_unclear_marker_; }

 private:
  std::string pick(const std::vector<std::string>& choices) {
    return choices[random_() % choices.size()];
  }

  std::string names() {
    // The hashed ones are gpu7, [gpu7]:2222 and gpu8 by `ssh-keygen -H`.
    return pick({"gpu7", "GPU7,10.0.0.7", "[gpu7]:2222", "[gpu7]:*", "gpu?", "*", "gpu*,!gpu7",
                 "!gpu8,gpu*", "gpu8", "[gpu7]:22", "red", "r?d,gpu7", ",gpu7,",
                 "|1|AfkFk8Qoc4EeiN+DMk6zh8MJKAY=|42bTzW2Z/NRIaTRQ91/KeYsFUqs=",
                 "|1|K9TtxCyXjEGEbeZSxyI7/QPbepU=|rpf82sBUml4fC2an630se3A9dAo=",
                 "|1|tTjlkARLyyN1nNvb5iqbrGsewxM=|zEoCr4mtF+VcgGLR6iCIVLQENoQ="});
  }

  std::string key() {
    switch (random_() % 9) {
      case 0:
      case 1:
      case 2:
        return server_.key("ed25519");
      case 3:
      case 4:
        return server_.key("ecdsa");
      case 5:
      case 6:
        return server_.other();
      case 7:
        return server_.other_ecdsa();
      default:
        has_unreadable_line_ = true;
        return pick({"new-kind AAAACG5ldy1raW5kAAAABA==", "ssh-ed25519 AAAA", "ssh-rsa",
                     "1024 35 12345678", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEMt=",
                     "ssh-rsa" + server_.key("ed25519").substr(11)});
    }
  }

  std::string line() {
    const std::string blank = pick({" ", "  ", "\t"});
    const std::string end = pick({"\n", "\n", "\r\n", " ann@home\n", " # comment\n"});
    switch (random_() % 12) {
      case 0:
        return pick({"# gpu7 comment\n", "\n", "   \n", "<<<<<<< HEAD\n", "no line at all\n"});
      case 1:
        return "@cert-authority " + names() + blank + key() + end;
      case 2: {
        const bool was_unreadable = std::exchange(has_unreadable_line_, false);
        const std::string text = "@revoked " + names() + blank + key() + end;
        has_unclear_marker_ = has_unclear_marker_ || has_unreadable_line_;
        has_unreadable_line_ = has_unreadable_line_ || was_unreadable;
        return text;
      }
      case 3:
        if (random_() % 3 != 0) return names() + blank + server_.key("ed25519") + end;
        has_unreadable_line_ = true;
        if (random_() % 2 == 0) return "|1|bad|hash " + key() + end;
        has_unclear_marker_ = true;
        return pick({"@revoke ", "@revoked @revoked ", "@ "}) + names() + blank + key() + end;
      default:
        return pick({"", "", " "}) + names() + blank + key() + end;
    }
  }

  const Server& server_;
  std::mt19937 random_;
  bool has_unreadable_line_ = false;  ///< over which ssh passes
  bool has_unclear_marker_ = false;   ///< likewise
};

/// Whether `ours` is what ssh says, or closed where ssh passes over a line.
bool agrees(State ours, State theirs, const KnownHostsWriter& writer) {
  if (ours == State::doubtful && writer.has_unclear_marker()) return true;
  if (ours == theirs) return true;
  if (theirs != State::unknown) return false;
  if (ours == State::certified) return true;
  return (ours == State::doubtful || ours == State::changed) && writer.has_unreadable_line();
}

TEST(KnownHostsPeer, AgreesWithSshOnRandomFiles) {
  if (std::system("command -v ssh ssh-keygen >/dev/null") != 0 ||
      std::system(fmt::format("test -x {}", kSshd).c_str()) != 0)
    GTEST_SKIP() << "ssh, ssh-keygen or sshd is not installed";
  const Server server;
  const std::vector<Target> targets = {
      {"gpu7", 22, ""}, {"gpu7", 2222, ""}, {"GPU7", 22, ""}, {"gpu9", 2222, "Red"}};
  const unsigned first = number("DTOOL_PEER_SEED", 1);
  const unsigned rounds = number("DTOOL_PEER_ROUNDS", 60);
  std::map<State, int> seen;
  for (unsigned seed = first; seed < first + rounds; ++seed) {
    KnownHostsWriter writer(server, seed);
    const Target& target = targets[seed % targets.size()];
    const std::vector<std::string> files = writer.write();
    const std::string said = server.says(target, files);
    const State theirs = state_in(said);
    const State ours = server.ours(target);
    ASSERT_NE(theirs, State::unreachable) << said;
    ++seen[theirs];
    EXPECT_TRUE(agrees(ours, theirs, writer))
        << "seed " << seed << ": ours " << static_cast<int>(ours) << ", theirs "
        << static_cast<int>(theirs) << " for " << target.name << ":" << target.port << " "
        << target.alias << "\n"
        << fmt::format("--- 1\n{}--- 2\n{}--- 3\n{}--- ssh\n{}", files[0], files[1], files[2],
                       said);
  }
  for (const State state : {State::known, State::unknown, State::changed, State::revoked})
    EXPECT_GT(seen[state], 0) << "no round had state " << static_cast<int>(state);
}

}  // namespace
}  // namespace dtool::ssh
