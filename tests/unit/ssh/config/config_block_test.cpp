// SPDX-License-Identifier: MIT
// The text of SSH configuration files: lines, quotes, blocks, includes.
#include "ssh/config/config_block.h"

#include <gtest/gtest.h>

#include <random>

#include "ssh/notice.h"
#include "tests/unit/fault.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

class ConfigBlockTest : public testing::Test {
 protected:
  std::vector<ConfigBlock> read(std::string_view text) {
    return read_config_blocks(folder_.write("config", text), folder_.path(),
                              folder_.path() / "home");
  }

  // All settings of all blocks, one a line.
  std::string flat(std::string_view text) {
    std::string lines;
    for (const ConfigBlock& block : read(text)) {
      for (const ConfigSetting& setting : block.settings) {
        lines += setting.keyword;
        for (const std::string& value : setting.values) lines += "|" + value;
        lines += "\n";
      }
    }
    return lines;
  }

  std::string fault(std::string_view text) {
    const std::string message = tests::fault_of([&] { read(text); });
    const std::string folder = folder_.path().string() + "/";
    return message.starts_with(folder) ? message.substr(folder.size()) : message;
  }

  tests::TemporaryFolder folder_;
};

TEST_F(ConfigBlockTest, ReadsKeywordsInAnyCaseWithBlanksOrAnEqualsSign) {
  EXPECT_EQ(flat("Port 22\nUSER=ann\nhostname = gpu01\n\tHostKeyAlias\t=\tx  \r\n"),
            "port|22\nuser|ann\nhostname|gpu01\nhostkeyalias|x\n");
}

TEST_F(ConfigBlockTest, TakesQuotesAndBackslashesOff) {
  EXPECT_EQ(flat("IdentityFile \"~/my keys/id\"\n"), "identityfile|~/my keys/id\n");
  EXPECT_EQ(flat("IdentityFile='a \"b\" c'\n"), "identityfile|a \"b\" c\n");
  EXPECT_EQ(flat("IdentityFile my\\ key\n"), "identityfile|my key\n");
  EXPECT_EQ(flat("UserKnownHostsFile \"a b\" c\n"), "userknownhostsfile|a b|c\n");
}

TEST_F(ConfigBlockTest, NamesALineWithAKeywordThatSshDoesNotKnowOnce) {
  std::string told;
  give_notices_to([&told](std::string_view line) { told.append(line).append("\n"); });
  const std::string text =
      "Port 22\nHostnme gpu01\nForwardAgent yes\nIgnoreUnknown \"UseK*,Other\"\nUseKeychain yes\n"
      "other 1\nThird 1\n";
  EXPECT_EQ(flat(text), "port|22\n");
  EXPECT_EQ(flat(text), "port|22\n");
  give_notices_to({});
  const std::string file = (folder_.path() / "config").string();
  EXPECT_EQ(told, file + ":2: ssh knows no setting 'hostnme': it is left out\n" + file +
                      ":7: ssh knows no setting 'third': it is left out\n");
}

TEST_F(ConfigBlockTest, PassesCommentsBlankLinesAndUnusedKeywordsOver) {
  EXPECT_EQ(
      flat("# Port 1\n\n  # x\nPort 22 # the usual\nForwardAgent yes\nSendEnv LANG LC_*\nX \"\n"),
      "port|22\n");
}

TEST_F(ConfigBlockTest, KeepsAProxyCommandAsItStands) {
  EXPECT_EQ(flat("ProxyCommand ssh -W \"%h:%p\" gate # x\n"),
            "proxycommand|ssh -W \"%h:%p\" gate # x\n");
}

TEST_F(ConfigBlockTest, LeavesToSshWhatACriterionOfMatchAsksAndNotWhatItsValueIsCalled) {
  const auto undecided = [&](std::string_view line) {
    const std::string text = read(line).back().undecided;
    return text.substr(0, text.find(" ("));
  };
  EXPECT_EQ(undecided("Match user ann exec true\n"), "Match exec");
  EXPECT_EQ(undecided("Match !FINAL tagged=x\n"), "Match final");
  EXPECT_EQ(undecided("Match canonical host exec user final\n"), "");
}

TEST_F(ConfigBlockTest, NamesTheLineThatCannotBeRead) {
  EXPECT_EQ(fault("Port 22\nPort 0\n"), "config:2: Port '0' is not a number from 1 to 65535");
  EXPECT_EQ(fault("\nPort abc\n"), "config:2: Port 'abc' is not a number from 1 to 65535");
  EXPECT_EQ(fault("Port 65536\n"), "config:1: Port '65536' is not a number from 1 to 65535");
  EXPECT_EQ(fault("User\n"), "config:1: User has no value");
  EXPECT_EQ(fault("User = # none\n"), "config:1: User has no value");
  EXPECT_EQ(fault("Host\n"), "config:1: Host has no value");
  EXPECT_EQ(fault("GSSAPIAuthentication \"\"\n"), "config:1: gssapiauthentication has no value");
  EXPECT_EQ(fault("Match\n"), "config:1: Match has no value");
  EXPECT_EQ(fault("Match host\n"), "config:1: Match 'host' has no value");
  EXPECT_EQ(fault("Match hots gpu\n"), "config:1: Match knows no 'hots'");
  EXPECT_EQ(fault("Include\n"), "config:1: Include has no value");
  EXPECT_EQ(fault("User \"ann\n"), "config:1: the quotation mark \" has no partner");
  EXPECT_EQ(fault("IdentitiesOnly perhaps\n"),
            "config:1: IdentitiesOnly 'perhaps' is not yes or no");
  EXPECT_EQ(fault("ConnectTimeout soon\n"),
            "config:1: ConnectTimeout 'soon' is not a time such as 10 or 1m30s");
  EXPECT_EQ(fault("ProxyJump gate:0\n"),
            "config:1: 'gate:0' is not a host: port '0' is not a number from 1 to 65535");
  EXPECT_EQ(fault("IdentityFile my key\n"),
            "config:1: IdentityFile has several values: 'my key'\n"
            "hint: put quotes around a value with blanks");
}

TEST_F(ConfigBlockTest, IncludesFilesByPatternInOrder) {
  folder_.write("conf.d/b.conf", "User b\n");
  folder_.write("conf.d/a.conf", "User a\n");
  folder_.write("conf.d/c.conf/not_a_file", "User c\n");
  folder_.write("home/extra", "User home\n");
  EXPECT_EQ(flat("Include conf.d/*.conf ~/extra nowhere/*\nUser last\n"),
            "user|a\nuser|b\nuser|home\nuser|last\n");
  EXPECT_EQ(flat("Include \"" + (folder_.path() / "home/extra").string() + "\"\n"), "user|home\n");
}

TEST_F(ConfigBlockTest, SubjectsIncludedFilesToTheBlockAroundTheirLine) {
  folder_.write("inner", "User inner\nHost b*\nPort 23\n");
  const std::vector<ConfigBlock> blocks = read("Host a*\nInclude inner\nHostName x\nHost *\n");
  ASSERT_EQ(blocks.size(), 6u);
  EXPECT_EQ(blocks[2].parent, 1u) << "the start of inner";
  EXPECT_EQ(blocks[2].conditions.size(), 0u);
  EXPECT_EQ(blocks[3].parent, 1u) << "its own block";
  EXPECT_EQ(blocks[3].conditions.size(), 1u);
  EXPECT_EQ(blocks[4].parent, 1u) << "the outer block goes on";
  EXPECT_EQ(blocks[4].settings.at(0).keyword, "hostname");
  EXPECT_EQ(blocks[5].parent, std::nullopt);
  EXPECT_EQ(blocks[5].conditions.at(0).patterns.at(0), "*");
}

TEST_F(ConfigBlockTest, NamesTheLineOfTheIncludedFileThatCannotBeRead) {
  folder_.write("inner", "\n\nPort x\n");
  EXPECT_EQ(fault("Include inner\n"), "inner:3: Port 'x' is not a number from 1 to 65535");
}

TEST_F(ConfigBlockTest, RefusesAFileThatIncludesItself) {
  EXPECT_EQ(fault("Include config\n"), "config:1: Include is nested more than 16 deep");
}

TEST_F(ConfigBlockTest, SurvivesAnyText) {
  std::mt19937 random(3);
  const std::vector<std::string> parts = {
      "Host", "Match", "Include", "Port", "User", " ", "=",  "\n", "\"",   "'",  "\\",   "*",
      "!",    "#",     "22",      "all",  "host", ",", "\t", "%h", "\x80", "\r", "final"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (unsigned length = random() % 20; length > 0; --length)
      text += parts[random() % parts.size()];
    tests::fault_of([&] { read(text); });
  }
}

TEST(ConfigSetting, ByHandNeedsNoQuotesAroundBlanks) {
  EXPECT_EQ(read_config_setting("IdentityFile", "/my keys/id", ValueForm::word).values,
            std::vector<std::string>{"/my keys/id"});
  EXPECT_EQ(read_config_setting("IdentityFile", "\"/my keys/id\"", ValueForm::word).values,
            std::vector<std::string>{"/my keys/id"});
  EXPECT_EQ(read_config_setting("UserKnownHostsFile", "a b", ValueForm::word).values,
            (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace dtool::ssh
