// SPDX-License-Identifier: MIT
// Which hosts the flags name, and how they are reached; what of it a killfile remembers.
#include "cli/host_options.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "ssh/config/client_config.h"
#include "ssh/machine/files.h"
#include "ssh/notice.h"
#include "ssh/quote.h"
#include "tests/unit/fault.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::cli {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;
using tests::fault_of;

std::string fault(const std::string& ssh_cmd) {
  return fault_of([&] { parse_ssh_cmd(ssh_cmd); });
}

TEST(SshCmd, OfTheSeedIsUnderstood) {
  const SshCommand command = parse_ssh_cmd("ssh -i ~/.ssh/id -p 2222 ubuntu@{addr}");
  EXPECT_EQ(command.settings,
            (Pairs{{"IdentityFile", "~/.ssh/id"}, {"Port", "2222"}, {"User", "ubuntu"}}));
  EXPECT_FALSE(command.config_file);
}

TEST(SshCmd, EveryFlagIsUnderstoodWithAndWithoutABlank) {
  const SshCommand command =
      parse_ssh_cmd("ssh -F cfg -ikey -l ann -p22 -J gate -oCompression=yes {addr}");
  EXPECT_EQ(command.config_file, "cfg");
  EXPECT_EQ(command.settings, (Pairs{{"IdentityFile", "key"},
                                     {"User", "ann"},
                                     {"Port", "22"},
                                     {"ProxyJump", "gate"},
                                     {"Compression", "yes"}}));
}

TEST(SshCmd, ASettingIsCutAtItsFirstEqualsSignOrBlanksAsSshCutsIt) {
  EXPECT_EQ(parse_ssh_cmd("ssh -o Port=22").settings, (Pairs{{"Port", "22"}}));
  EXPECT_EQ(parse_ssh_cmd("ssh -o 'Port 22'").settings, (Pairs{{"Port", "22"}}));
  EXPECT_EQ(parse_ssh_cmd("ssh -o 'Port = 22'").settings, (Pairs{{"Port", "22"}}));
  EXPECT_EQ(parse_ssh_cmd("ssh -o 'ProxyCommand=nc -x=y %h'").settings,
            (Pairs{{"ProxyCommand", "nc -x=y %h"}}));
}

TEST(SshCmd, MayLeaveOutTheProgramAndTheAddress) {
  EXPECT_EQ(parse_ssh_cmd("-p 22").settings, (Pairs{{"Port", "22"}}));
  EXPECT_EQ(parse_ssh_cmd("ssh").settings, Pairs{});
  EXPECT_EQ(parse_ssh_cmd("").settings, Pairs{});
  EXPECT_EQ(parse_ssh_cmd("ssh {addr}").settings, Pairs{});
}

TEST(SshCmd, AUserMayHoldAnAtSign) {
  EXPECT_EQ(parse_ssh_cmd("ssh ann@example.org@{addr}").settings,
            (Pairs{{"User", "ann@example.org"}}));
}

TEST(SshCmd, AnythingElseIsNamed) {
  for (const std::string word : {"-v", "-A", "-oo", "-tt", "--", "-", "root@gpu01", "gpu01",
                                 "{addr}:22", "x{addr}", "@{addr}", "/usr/bin/ssh", "uptime"}) {
    const std::string message = fault("ssh " + word);
    const bool is_setting = word == "-oo";  // -o with the value `o`
    EXPECT_TRUE(message.starts_with("--ssh_cmd: ")) << word << ": " << message;
    EXPECT_NE(message.find(is_setting ? "not o" : word), std::string::npos) << message;
  }
}

TEST(SshCmd, AFlagWithoutItsValueIsNamed) {
  for (const std::string flag : {"-i", "-p", "-l", "-F", "-J", "-o"}) {
    EXPECT_EQ(fault("ssh " + flag), "--ssh_cmd: " + flag + " wants a value");
  }
  EXPECT_EQ(fault("ssh -o Port"), "--ssh_cmd: -o wants Keyword=value, not Port");
  EXPECT_EQ(fault("ssh -o =22"), "--ssh_cmd: -o wants Keyword=value, not =22");
  EXPECT_EQ(fault("ssh -o Port="), "--ssh_cmd: -o wants Keyword=value, not Port=");
}

TEST(SshCmd, AQuoteThatDoesNotEndIsNamed) {
  EXPECT_NE(fault("ssh -i 'key").find("a quote does not end"), std::string::npos);
}

TEST(ChooseTargets, AreNothingWhereNobodyNamesAHost) {
  EXPECT_FALSE(choose_targets({}, {}));
}

TEST(ChooseTargets, FlagsWinOverTheSettings) {
  Settings settings;
  settings.runs_on = "a,b";
  EXPECT_EQ(choose_targets({}, settings)->hosts.size(), 2U);
  HostOptions options;
  options.runs_on = "gpu[1-3]";
  EXPECT_EQ(choose_targets(options, settings)->hosts.size(), 3U);
}

TEST(ChooseTargets, GroupsComeFromTheSettings) {
  Settings settings;
  settings.groups = {{"big", {"gpu[1-2]"}}, {"all", {"@big,cpu"}}};
  HostOptions options;
  options.runs_on = "@all";
  EXPECT_EQ(choose_targets(options, settings)->hosts.size(), 3U);
  options.runs_on = "@small";
  const std::string message = fault_of([&] { choose_targets(options, settings); });
  EXPECT_NE(message.find("@small"), std::string::npos);
  EXPECT_NE(message.find("known groups: all, big"), std::string::npos) << message;
}

TEST(ChooseTargets, EveryHostOfAllGroupsIsNamedByAStar) {
  Settings settings;
  HostOptions options;
  options.runs_on = "@*!cpu";
  EXPECT_EQ(fault_of([&] { choose_targets(options, settings); }),
            "there is no group in the configuration\nhint: groups are defined under [groups] in "
            "~/.dtool/config.toml");
  settings.groups = {{"big", {"gpu[1-2]"}}, {"all", {"@big,cpu"}}};
  EXPECT_EQ(choose_targets(options, settings)->hosts.size(), 2U);
}

TEST(ChooseTargets, SomeArePickedByChanceInTheirOrderWithTheirSlots) {
  const tests::TemporaryFolder folder;
  HostOptions options;
  std::string lines;
  for (int i = 10; i < 60; ++i)
    lines += "h" + std::to_string(i) + " slots=" + std::to_string(i) + "\n";
  options.hostfile = folder.write("hosts", lines).string();
  options.exclude_hosts = "h10";
  options.pick = 3;
  std::set<std::string> seen;
  for (int round = 0; round < 20; ++round) {
    const Targets targets = *choose_targets(options, {});
    ASSERT_EQ(targets.hosts.size(), 3U);
    ASSERT_EQ(targets.slots.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(targets.hosts[i].name, "h" + std::to_string(*targets.slots[i]));
      EXPECT_TRUE(i == 0 || targets.slots[i - 1] < targets.slots[i]);
      seen.insert(targets.hosts[i].name);
    }
  }
  EXPECT_GT(seen.size(), 5U);
  EXPECT_FALSE(seen.contains("h10"));
  options.pick = 50;
  EXPECT_EQ(fault_of([&] { choose_targets(options, {}); }),
            "--pick 50: there are 49 hosts to pick from");
  options = {};
  options.pick = 1;
  EXPECT_NE(fault_of([&] { choose_targets(options, {}); }).find("none were\nhint: --runs_on"),
            std::string::npos);
}

TEST(ChooseTargets, SlotsComeFromAHostfile) {
  const tests::TemporaryFolder folder;
  HostOptions options;
  options.hostfile = folder.write("hosts", "red01 slots=2\nred02\n").string();
  const Targets targets = *choose_targets(options, {});
  EXPECT_EQ(targets.slots, (std::vector<std::optional<int>>{2, std::nullopt}));
}

TEST(ChooseTargets, BothFlagsAreOneTooMany) {
  HostOptions options;
  options.runs_on = "a";
  options.hostfile = "b";
  EXPECT_NE(fault_of([&] { choose_targets(options, {}); }).find("both name hosts"),
            std::string::npos);
}

/// Of the hosts `ann@gpu[1-3]:22` and `local`, those that are left.
std::vector<std::string> left_without(const std::string& hosts) {
  HostOptions options;
  options.runs_on = "ann@gpu[1-3]:22,local";
  options.exclude_hosts = hosts;
  const Targets targets = *choose_targets(options, {});
  EXPECT_EQ(targets.hosts.size(), targets.slots.size());
  std::vector<std::string> names;
  for (const ssh::Host& host : targets.hosts) names.push_back(host.name);
  return names;
}

TEST(ChooseTargets, HostsAreLeftOutByTheirNamesOrAsTheyWereNamed) {
  EXPECT_EQ(left_without("gpu2"), (std::vector<std::string>{"gpu1", "gpu3", "local"}));
  EXPECT_EQ(left_without("ann@gpu[1-2]:22,local"), (std::vector<std::string>{"gpu3"}));
}

TEST(ChooseTargets, AHostThatIsNotAmongThemCannotBeLeftOut) {
  EXPECT_EQ(fault_of([] { left_without("bob@gpu1:22"); }),
            "--exclude_hosts: bob@gpu1:22 is not among the hosts\nhint: did you mean ann@gpu1:22?");
  EXPECT_EQ(fault_of([] { left_without("login"); }),
            "--exclude_hosts: login is not among the hosts\nhint: they are "
            "ann@gpu[1-3]:22,local");
  EXPECT_EQ(fault_of([] { left_without("gpu[1-3],local"); }),
            "--exclude_hosts leaves out all hosts");
  HostOptions options;
  options.exclude_hosts = "gpu1";
  EXPECT_EQ(fault_of([&] { choose_targets(options, {}); }),
            "--exclude_hosts leaves hosts out of those that are named, and none were\nhint: "
            "--runs_on names them");
}

class Recorded : public testing::Test {
 protected:
  void SetUp() override { ::setenv("HOME", home_.path().c_str(), 1); }
  void TearDown() override { ::setenv("HOME", old_home_.c_str(), 1); }

  /// The hosts of a run that was started with `options`, as a later command in another folder
  /// reaches them.
  Targets later(const HostOptions& options, const HostOptions& now = {}) {
    const Targets targets = *choose_targets(options, {});
    killfiles::Killfile killfile;
    for (const ssh::Host& host : targets.hosts)
      killfile.machines.push_back({0, ssh::to_string(host), "s", "", "", ""});
    write_connection(targets.connect, killfile);
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path("/");
    const Targets result = recorded_targets(killfile, now, {});
    std::filesystem::current_path(before);
    return result;
  }

  ssh::Endpoint endpoint(const Targets& targets) {
    return ssh::ClientConfig::read(targets.connect.config_file, targets.connect.settings)
        .resolve(targets.hosts.front());
  }

  /// Those of a killfile that this machine's user did not write.
  ssh::ConnectOptions of_somebody_else(const Pairs& settings, const HostOptions& now = {}) {
    killfiles::Killfile killfile;
    killfile.run_id = "theirs";
    killfile.ssh_config_file = "/theirs/config";
    killfile.ssh_settings = settings;
    killfile.machines.push_back({0, "gpu1", "s", "", "", ""});
    return recorded_targets(killfile, now, {}).connect;
  }

  const std::filesystem::path here = std::filesystem::current_path();

 private:
  const tests::TemporaryFolder home_;
  const std::string old_home_ = ssh::home_folder().string();
};

TEST_F(Recorded, SomebodyElseChoosesNeitherWhoIsTrustedNorWhatRunsHere) {
  std::string told;
  ssh::give_notices_to([&told](std::string_view line) { told = line; });
  const ssh::ConnectOptions connect = of_somebody_else({{"UserKnownHostsFile", "/theirs/known"},
                                                        {"hostkeyalias", "theirs"},
                                                        {"ProxyCommand", "touch it's"},
                                                        {"user", "ann"},
                                                        {"Port", "2222"},
                                                        {"DtoolProgram", "ssh"}});
  ssh::give_notices_to({});
  EXPECT_EQ(connect.settings, (Pairs{{"user", "ann"}, {"Port", "2222"}}));
  EXPECT_FALSE(connect.config_file);
  EXPECT_EQ(connect.program, ssh::Program::automatic);
  // What the hint says is what was left out.
  const std::size_t at = told.find("--ssh_cmd ");
  ASSERT_NE(at, told.npos) << told;
  EXPECT_NE(told.find("hint: if you want them: --ssh_program ssh --ssh_cmd "), told.npos) << told;
  const SshCommand left = parse_ssh_cmd(ssh::split_shell_words(told.substr(at)).at(1));
  EXPECT_EQ(left.config_file, "/theirs/config");
  EXPECT_EQ(left.settings, (Pairs{{"UserKnownHostsFile", "/theirs/known"},
                                  {"hostkeyalias", "theirs"},
                                  {"ProxyCommand", "touch it's"}}));
}

TEST_F(Recorded, NoShellWordIsHiddenInAHarmlessSetting) {
  EXPECT_EQ(
      of_somebody_else({{"User", "ann;touch x"}, {"Port", "22 -o x"}, {"User", "$(x)"}}).settings,
      Pairs());
}

TEST_F(Recorded, WhatTheUsersFlagsSayIsTakenFromTheFlags) {
  bool was_told = false;
  ssh::give_notices_to([&was_told](std::string_view) { was_told = true; });
  HostOptions now;
  now.ssh_cmd = "ssh -o HostKeyAlias=k";
  const ssh::ConnectOptions connect = of_somebody_else({{"HostKeyAlias", "k"}}, now);
  ssh::give_notices_to({});
  EXPECT_EQ(connect.settings, (Pairs{{"HostKeyAlias", "k"}}));
  EXPECT_FALSE(was_told);
}

TEST_F(Recorded, HostsAreReachedAsTheyWereThen) {
  HostOptions options;
  options.runs_on = "ann@gpu[1-2]:2222,[fe80::1]:22,local";
  options.ssh_cmd = "ssh -F none -o HostKeyAlias=k -J none";
  const Targets targets = later(options);
  ASSERT_EQ(targets.hosts, choose_targets(options, {})->hosts);
  EXPECT_EQ(targets.slots.size(), 4U);
  EXPECT_EQ(endpoint(targets).key_name, "k");
}

TEST_F(Recorded, NoConfigurationFileStaysNone) {
  HostOptions options;
  options.runs_on = "gpu1";
  options.ssh_cmd = "ssh -F none";
  EXPECT_EQ(later(options).connect.config_file, "none");
}

TEST_F(Recorded, FilesAreFoundFromAnotherFolder) {
  HostOptions options;
  options.runs_on = "gpu1";
  options.ssh_cmd =
      "ssh -F none -i keys/id -i ~/id -i /abs/id -o 'UserKnownHostsFile=known more' "
      "-o CertificateFile=cert";
  const ssh::Endpoint then = endpoint(later(options));
  using Paths = std::vector<std::filesystem::path>;
  EXPECT_EQ(then.identity_files, (Paths{here / "keys/id", ssh::home_folder() / "id", "/abs/id"}));
  EXPECT_EQ(then.known_hosts, here / "known");
  EXPECT_EQ(then.known_hosts_files.at(1), here / "more");
  EXPECT_EQ(then.certificate_files, Paths{here / "cert"});
}

TEST_F(Recorded, FlagsOfNowWin) {
  HostOptions options;
  options.runs_on = "gpu1";
  options.ssh_cmd = "ssh -F none -p 22 -l ann";
  HostOptions now;
  now.ssh_cmd = "ssh -F none -p 2222";
  const ssh::Endpoint reached = endpoint(later(options, now));
  EXPECT_EQ(reached.port, 2222);
  EXPECT_EQ(reached.user, "ann");
}

TEST_F(Recorded, TheTimeToWaitIsNotRemembered) {
  HostOptions options;
  options.runs_on = "gpu1";
  options.ssh_cmd = "ssh -F none";
  options.connect_timeout = 0.5;
  EXPECT_FALSE(endpoint(later(options)).connect_timeout);
  options.connect_timeout = HostOptions().connect_timeout;
  options.ssh_cmd = "ssh -F none -o connecttimeout=5";
  EXPECT_FALSE(endpoint(later(options)).connect_timeout);
}

}  // namespace
}  // namespace dtool::cli
