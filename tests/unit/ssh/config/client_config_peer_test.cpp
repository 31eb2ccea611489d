// SPDX-License-Identifier: MIT
// Random SSH configurations, resolved here and by `ssh -G`, which connects to nobody: the answers
// must agree.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "ssh/config/client_config.h"
#include "ssh/quote.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

// What ssh answers, keyword to values; empty where it refuses the file or is not installed.
std::multimap<std::string, std::string> ask_ssh(const std::filesystem::path& file,
                                                const std::string& host) {
  const std::string line = quote_all({"ssh", "-G", "-F", file.string(), host}) + " 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(line.c_str(), "r"), pclose);
  std::string text;
  for (int c; (c = fgetc(pipe.get())) != EOF;) text += static_cast<char>(c);
  std::multimap<std::string, std::string> answers;
  std::istringstream lines(text);
  for (std::string answer; std::getline(lines, answer);) {
    const std::size_t blank = std::min(answer.find(' '), answer.size());
    answers.emplace(answer.substr(0, blank), answer.substr(std::min(blank + 1, answer.size())));
  }
  return answers;
}

std::string one(const std::multimap<std::string, std::string>& answers,
                const std::string& keyword) {
  const auto found = answers.find(keyword);
  return found == answers.end() ? "" : found->second;
}

class ConfigWriter {
 public:
  explicit ConfigWriter(unsigned seed) : random_(seed) {}

  std::string write(int lines) {
    std::string text;
    for (int i = 0; i < lines; ++i) text += line() + "\n";
    return text;
  }

 private:
  std::string pick(const std::vector<std::string>& choices) {
    return choices[random_() % choices.size()];
  }

  std::string pattern() {
    return pick(
        {"gpu01", "gpu*", "gpu0?", "*", "!gpu01", "!gpu02", "*.lab", "a*1", "login", "?pu*"});
  }

  std::string line() {
    const std::string equals = pick({" ", " ", "=", " = ", "\t"});
    switch (random_() % 10) {
      case 0:
      case 1:
        return "Host" + equals + pattern() + " " + pattern();
      case 2:
        return "Match " +
               pick({"all", "host " + pattern() + "," + pattern(), "originalhost " + pattern(),
                     "user ann,b*", "!user ann", "host " + pattern() + " user bob",
                     "!host " + pattern(), "!originalhost \"" + pattern() + "\""});
      case 3:
        return "User" + equals + pick({"ann", "bob", "\"cat\"", "'dan'"});
      case 4:
        return "port" + equals + pick({"22", "2222", "65535"}) + pick({"", " # comment", "  "});
      case 5:
        return "HostName" + equals + pick({"%h.lab", "10.0.0.1", "gpu01", "x%%y"});
      case 6:
        return "IdentityFile" + equals +
               pick({"/k/%h", "/k/one", "\"/k/a b\"", "/k/%r@%n:%p", "/k/a\\ b"});
      case 7:
        return "ConnectTimeout" + equals + pick({"5", "1m30s", "none"});
      case 8:
        return pick({"ProxyJump gate", "ProxyJump bob@gate:2200", "ProxyJump none",
                     "ProxyJump one,two:23", "ProxyCommand none"});
      default:
        return pick({"Include inner", "", "# comment", "ForwardAgent no", "IdentitiesOnly yes",
                     "identitiesonly=no", "HostKeyAlias alias"});
    }
  }

  std::mt19937 random_;
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

void expect_agreement(const std::filesystem::path& file, const std::string& host,
                      const std::string& about) {
  const auto theirs = ask_ssh(file, host);
  ASSERT_FALSE(theirs.empty()) << "ssh refuses the file\n" << about;
  const Endpoint ours = ClientConfig::read(file, {}).resolve(parse_host(host));
  EXPECT_EQ(ours.address, one(theirs, "hostname")) << about;
  EXPECT_EQ(ours.user, one(theirs, "user")) << about;
  EXPECT_EQ(std::to_string(ours.port), one(theirs, "port")) << about;
  // ssh asks for a jump host's own jumps only when it gets there; they stand in front of ours.
  EXPECT_TRUE(joined(ours.jumps).ends_with(one(theirs, "proxyjump")))
      << joined(ours.jumps) << about;
  EXPECT_EQ(ours.jumps.empty(), one(theirs, "proxyjump").empty()) << about;
  EXPECT_EQ(ours.only_named_identities ? "yes" : "no", one(theirs, "identitiesonly")) << about;
  const std::string timeout = one(theirs, "connecttimeout");
  EXPECT_EQ(ours.connect_timeout ? std::to_string(ours.connect_timeout->count() / 1000) : "none",
            timeout)
      << about;
}

constexpr unsigned kRounds = 40;

TEST(ClientConfigPeer, AgreesWithSshOnRandomConfigurations) {
  const tests::TemporaryFolder folder;
  if (ask_ssh(folder.write("empty", ""), "gpu01").empty()) GTEST_SKIP() << "ssh is not installed";
  const std::vector<std::string> hosts = {"gpu01", "gpu02", "ann@gpu01", "bob@login", "a1"};
  for (unsigned seed = 0; seed < kRounds; ++seed) {
    const std::string inner = ConfigWriter(seed + 1000).write(3);
    std::string text = ConfigWriter(seed).write(12);
    const std::filesystem::path inner_file = folder.write("inner", inner);
    for (std::size_t at; (at = text.find("Include inner")) != std::string::npos;) {
      text.replace(at, 13, "Include " + inner_file.string());
    }
    if (inner.find("Include inner") != std::string::npos) continue;  // it would hold itself
    const std::filesystem::path file = folder.write("config", text);
    const std::string& host = hosts[seed % hosts.size()];
    expect_agreement(file, host, fmt::format("{}\n--- config\n{}--- inner\n{}", host, text, inner));
  }
}

}  // namespace
}  // namespace dtool::ssh
