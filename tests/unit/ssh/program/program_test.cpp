// SPDX-License-Identifier: MIT
#include "ssh/program/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace dtool::ssh {
namespace {

TEST(Program, ConfigurationBeginsWithWhatNoFileChanges) {
  ConnectOptions options;
  options.config_file = "/tmp/ssh file";
  const std::string text = program_config(options);
  EXPECT_TRUE(text.starts_with("StrictHostKeyChecking yes\n"));
  EXPECT_LT(text.find("ForwardAgent no\n"), text.find("Include \"/tmp/ssh file\"\n"));
  EXPECT_LT(text.find("ClearAllForwardings yes\n"), text.find("Include"));
  EXPECT_EQ(text.find("/etc/ssh/ssh_config"), std::string::npos);
  options.config_file = "none";
  EXPECT_EQ(program_config(options).find("Include"), std::string::npos);
  options.config_file = "/tmp/a*";
  EXPECT_THROW(program_config(options), std::invalid_argument);
}

TEST(Program, SettingsByHandDoNotUndoWhatIsAlwaysSo) {
  ConnectOptions options;
  options.settings = {{"stricthostkeychecking", "no"}, {"IdentityFile", "/a b"}, {"Port", "23"}};
  const Host host = parse_host("ann@h1:24");
  const auto words = program_arguments("/c", options, host, {"-G"});
  const std::vector<std::string> wanted = {"ssh", "-F",      "/c", "-o",  "IdentityFile=\"/a b\"",
                                           "-o",  "Port=23", "-l", "ann", "-p",
                                           "24",  "-G",      "--", "h1"};
  EXPECT_EQ(words, wanted);
}

TEST(Program, ReadsWhatSshWillDo) {
  const ProgramSettings settings = read_program_settings(
      "user ann\nhostname 10.0.0.1\nport 22\ncontrolpath /tmp/m\nidentityfile /k\n"
      "userknownhostsfile /a /b\n");
  EXPECT_EQ(settings.address, "10.0.0.1");
  EXPECT_EQ(settings.control_path, "/tmp/m");
  EXPECT_EQ(settings.known_hosts, "/a");
  EXPECT_EQ(settings.files.size(), 3u);
  EXPECT_EQ(read_program_settings("controlpath none\n").control_path, "");
}

TEST(Program, WordsOfSshBecomeFailures) {
  ProgramSettings settings;
  settings.address = "h1";
  settings.port = "22";
  settings.user = "ann";
  const auto failure = [&](const char* words) {
    return program_failure(words, settings, 0).failure();
  };
  EXPECT_EQ(failure("@@@\nREMOTE HOST IDENTIFICATION HAS CHANGED!\nHost key verification failed."),
            Failure::host_key_changed);
  EXPECT_EQ(failure("@@@\nWARNING: REVOKED HOST KEY DETECTED!\nHost key verification failed."),
            Failure::host_key_revoked);
  EXPECT_EQ(failure("No ED25519 host key is known for h1 and you have requested strict checking."),
            Failure::host_key_unknown);
  EXPECT_EQ(failure("ann@h1: Permission denied (publickey)."), Failure::not_authenticated);
  EXPECT_EQ(failure("ssh: connect to host h1 port 22: Connection timed out"),
            Failure::connect_timed_out);
  EXPECT_EQ(failure("ssh: connect to host h1 port 22: Connection refused"), Failure::unreachable);
}

}  // namespace
}  // namespace dtool::ssh
