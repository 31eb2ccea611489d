// SPDX-License-Identifier: MIT
// The configuration files.
#include "cli/settings.h"

#include <gtest/gtest.h>

#include "tests/unit/documented_example.h"
#include "tests/unit/fault.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::cli {
namespace {

using std::chrono::milliseconds;
using Variables = std::map<std::string, std::string>;
using Groups = std::map<std::string, NamedGroup>;

class SettingsTest : public testing::Test {
 protected:
  Settings read(std::string_view user, std::string_view project = "") {
    const auto project_file = folder_.write("dtool.toml", project);
    if (const auto found = read_project_file(project_file)) accept(*found);
    return SettingsFiles(folder_.write("config.toml", user), project_file).all();
  }

  std::string fault(std::string_view user, std::string_view project = "") {
    const std::string message = tests::fault_of([&] { read(user, project); });
    const std::string folder = folder_.path().string() + "/";
    return message.starts_with(folder) ? message.substr(folder.size()) : message;
  }

  tests::TemporaryFolder folder_;
  tests::TemporaryVariable home_{"HOME", folder_.path()};
};

TEST_F(SettingsTest, SayNothingWhereNoFileDoes) {
  const Settings settings = SettingsFiles(folder_.path() / "a", folder_.path() / "b").all();
  EXPECT_EQ(settings.runs_on, std::nullopt);
  EXPECT_TRUE(settings.groups.empty());
  EXPECT_EQ(settings.connect_timeout, std::nullopt);
  EXPECT_EQ(settings.nproc_per_node, std::nullopt);
  EXPECT_TRUE(settings.exclude.empty());
}

TEST_F(SettingsTest, TakeEveryKey) {
  const Settings settings = read(
      "runs_on = \"@lab\"\n"
      "[groups]\nlab = \"gpu[01-08]\"\n\"big.machines\" = \"n1\"\n"
      "[ssh]\nconnect_timeout = 2.5\nwidth = 64\nconfig_file = \"~/.ssh/lab\"\n"
      "[run]\ncode_path = \"~/code\"\nenv_activate_path = \"~/venv/bin/activate\"\n"
      "output_dir = \"out\"\nnproc_per_node = 4\nlost_after = 9\nexclude = [\"*.ckpt\", "
      "\"data\"]\nown_tree = false\nrelay = "
      "true\n"
      "modules = \"gcc\"\ncontainer = \"a.sif\"\ncontainer_engine = \"podman\"\nbind = "
      "[\"/data\"]\n"
      "[environment]\nNCCL_DEBUG = \"INFO\"\n_X1 = \"a b'c\"\n");
  EXPECT_EQ(settings.runs_on, "@lab");
  EXPECT_EQ(settings.groups, (Groups{{"lab", {"gpu[01-08]"}}, {"big.machines", {"n1"}}}));
  EXPECT_EQ(settings.connect_timeout, milliseconds(2500));
  EXPECT_EQ(settings.width, 64u);
  EXPECT_EQ(settings.ssh_config_file, "~/.ssh/lab");
  EXPECT_EQ(settings.code_path, "~/code");
  EXPECT_EQ(settings.env_activate_path, "~/venv/bin/activate");
  EXPECT_EQ(settings.output_dir, "out");
  EXPECT_EQ(settings.nproc_per_node, "4");
  EXPECT_EQ(settings.lost_after, 9);
  EXPECT_EQ(settings.exclude, (std::vector<std::string>{"*.ckpt", "data"}));
  EXPECT_EQ(settings.relay, true);
  EXPECT_EQ(settings.own_tree, false);
  EXPECT_EQ(settings.modules, "gcc");
  EXPECT_EQ(settings.container, "a.sif");
  EXPECT_EQ(settings.container_engine, "podman");
  EXPECT_EQ(settings.bind, std::vector<std::string>{"/data"});
  EXPECT_EQ(settings.environment, (Variables{{"NCCL_DEBUG", "INFO"}, {"_X1", "a b'c"}}));
}

TEST_F(SettingsTest, OfTheProjectWinOverTheUsersKeyByKey) {
  const Settings settings = read(
      "runs_on = \"a\"\n[groups]\nx = \"x1\"\ny = \"y1\"\n[ssh]\nwidth = 1\nconnect_timeout = 1\n"
      "[run]\nexclude = [\"old\"]\nnproc_per_node = \"auto\"\n[environment]\nA = \"1\"\nB = "
      "\"1\"\n",
      "runs_on = \"b\"\n[groups]\nx = \"x2\"\n[ssh]\nwidth = 2\n"
      "[run]\nexclude = []\n[environment]\nB = \"2\"\n");
  EXPECT_EQ(settings.runs_on, "b");
  EXPECT_EQ(settings.groups, (Groups{{"x", {"x2"}}, {"y", {"y1"}}}));
  EXPECT_EQ(settings.width, 2u);
  EXPECT_EQ(settings.connect_timeout, milliseconds(1000));
  EXPECT_TRUE(settings.exclude.empty());
  EXPECT_EQ(settings.nproc_per_node, "auto");
  EXPECT_EQ(settings.environment, (Variables{{"A", "1"}, {"B", "2"}}));
}

TEST_F(SettingsTest, SayHowLongConnectionsAreKept) {
  EXPECT_EQ(read("").keep_connections, std::nullopt);
  EXPECT_EQ(read("[connections]\nkeep = 0\n").keep_connections, std::chrono::seconds(0));
  EXPECT_EQ(read("[connections]\nkeep = 60\n").keep_connections, std::chrono::minutes(1));
  for (const char* keep : {"-1", "86401"}) {
    EXPECT_NE(fault(std::string("[connections]\nkeep = ") + keep + "\n").find("is no number"),
              std::string::npos);
  }
}

TEST_F(SettingsTest, WithAnUnknownKeyNameTheNearest) {
  EXPECT_EQ(fault("\nrun_on = \"a\"\n"),
            "config.toml:2:1: unknown key 'run_on'\nhint: did you mean 'runs_on'?");
  EXPECT_EQ(fault("", "[shs]\n"), "dtool.toml:1:2: unknown key 'shs'\nhint: did you mean 'ssh'?");
  EXPECT_EQ(fault("[ssh]\ntimeout = 3\n"),
            "config.toml:2:1: unknown key 'ssh.timeout'\n"
            "hint: known are connect_timeout, width, config_file, program, ask");
  EXPECT_EQ(fault("[run]\nexlude = []\n"),
            "config.toml:2:1: unknown key 'run.exlude'\nhint: did you mean 'exclude'?");
}

TEST_F(SettingsTest, OfAWrongTypeAreRefused) {
  EXPECT_EQ(fault("runs_on = [\"a\"]\n"), "config.toml:1:11: runs_on must be a string, not a list");
  EXPECT_EQ(fault("[groups]\na = 1\n"),
            "config.toml:2:5: groups.a must be a table, not a whole number");
  EXPECT_EQ(fault("groups = \"a\"\n"), "config.toml:1:10: groups must be a table, not a string");
  EXPECT_EQ(fault("[ssh]\nwidth = 1.5\n"),
            "config.toml:2:9: ssh.width must be a whole number, not a number with a fraction");
  EXPECT_EQ(fault("[ssh]\nconnect_timeout = \"5s\"\n"),
            "config.toml:2:19: ssh.connect_timeout must be a number, not a string");
  EXPECT_EQ(fault("[run]\nrelay = \"yes\"\n"),
            "config.toml:2:9: run.relay must be true or false, not a string");
  EXPECT_EQ(fault("[run]\nexclude = \"a\"\n"),
            "config.toml:2:11: run.exclude must be a list of strings, not a string");
  EXPECT_EQ(
      fault("[run]\nnproc_per_node = 1.5\n"),
      "config.toml:2:18: run.nproc_per_node must be a whole number, not a number with a fraction");
  EXPECT_EQ(fault("[environment]\nA = 1\n"),
            "config.toml:2:5: environment.A must be a string, not a whole number");
}

TEST_F(SettingsTest, WithValuesThatCannotBeAreRefused) {
  for (const std::string timeout : {"0", "-1", "nan", "inf", "-inf", "1e9", "0.0001"}) {
    EXPECT_NE(fault("[ssh]\nconnect_timeout = " + timeout)
                  .find("is no number of seconds from 0.001 to 86400"),
              std::string::npos)
        << timeout;
  }
  EXPECT_NE(fault("[ssh]\nwidth = 0\n").find("ssh.width: 0 is not a positive number"),
            std::string::npos);
  for (const std::string count : {"0", "-1", "\"many\"", "\"4\"", "99999999999"}) {
    EXPECT_NE(fault("[run]\nnproc_per_node = " + count)
                  .find("nproc_per_node: is neither a number from 1 to 4096 nor 'auto'"),
              std::string::npos)
        << count;
  }
  for (const std::string value : {"0", "86401"}) {
    EXPECT_NE(fault("[run]\nlost_after = " + value)
                  .find("lost_after: " + value + " is no number of seconds from 1 to 86400"),
              std::string::npos);
  }
  for (const std::string key :
       {"runs_on = \"\"", "[groups]\na = \"\"", "[run]\ncode_path = \"\""}) {
    EXPECT_NE(fault(key).find(": is empty"), std::string::npos) << key;
  }
  for (const std::string name :
       {"\"a b\"", "\"@a\"", "\"a,b\"", "\"a[1]\"", "\"\"", "\"$(x)\"", "\"a'b\"", "\"\u00e4\""}) {
    EXPECT_NE(fault("[groups]\n" + name + " = \"x\"\n").find("a group's name"), std::string::npos);
  }
}

TEST_F(SettingsTest, MayNameThePlaceWhereTheHostsOfAGroupStand) {
  const Settings settings = read(
      "[groups]\na.from = \"command: cat 'my hosts': x\"\nb = {from = \"ansible:lab.ini\", only = "
      "\"gpu\"}\n"
      "[groups.c]\nfrom = \"genders: /etc/genders\"\nonly = \"a=1\"\n[groups.d]\nfrom = \"slurm\"\n"
      "only = \"debug\"\n[groups.e]\nfrom = \"ssh_config\"\n[groups.f]\nfrom = \"ansible: "
      "~/x.yml\"\n",
      "[groups]\ne = \"h1\"\n");
  const std::string folder = folder_.path().string();
  EXPECT_EQ(settings.groups, (Groups{{"a", {"", "command", "cat 'my hosts': x", ""}},
                                     {"b", {"", "ansible", folder + "/lab.ini", "gpu"}},
                                     {"c", {"", "genders", "/etc/genders", "a=1"}},
                                     {"d", {"", "slurm", "", "debug"}},
                                     {"e", {"h1", "", "", ""}},
                                     {"f", {"", "ansible", folder + "/x.yml", ""}}}));
}

TEST_F(SettingsTest, RefuseAPlaceThatIsNone) {
  for (const std::string from : {"", "command", "command: ", "ansible:", "genders", "slurm: gpu",
                                 "ssh_config: x", "file: x", ": x", " slurm"}) {
    EXPECT_EQ(fault("[groups.a]\nfrom = \"" + from + "\"\n"),
              "config.toml:2:8: groups.a.from: is not command: LINE, ansible: FILE, genders: FILE, "
              "ssh_config or slurm")
        << from;
  }
  for (const std::string text :
       {"from = \"command: x\"\nonly = \"a\"", "from = \"slurm\"\nonly = \"\"",
        "from = \"ssh_config\"\nonly = \"a\""}) {
    EXPECT_NE(fault("[groups.a]\n" + text + "\n").find("only: names a group of ansible"),
              std::string::npos)
        << text;
  }
  EXPECT_NE(fault("[groups.a]\nfrom = \"slurm\"\nhosts = \"x\"\n").find("hosts"),
            std::string::npos);
  EXPECT_NE(fault("[groups.a]\nonly = \"x\"\n").find("from: is not"), std::string::npos);
}

TEST_F(SettingsTest, OfTheEnvironmentMustBeVariables) {
  for (const std::string name : {"\"A B\"", "1A", "\"A=B\"", "\"\"", "A-B"}) {
    EXPECT_NE(fault("[environment]\n" + name + " = \"x\"\n").find("is no name of a variable"),
              std::string::npos)
        << name;
  }
  EXPECT_NE(fault("[environment]\nDTOOL_RUN_ID = \"x\"\n").find("is set by dtool itself"),
            std::string::npos);
  EXPECT_NE(fault("[environment]\nA = \"x\\u0000y\"\n").find("holds a NUL character"),
            std::string::npos);
}

TEST_F(SettingsTest, ThatAreNoTomlAreRefusedWithTheirPlace) {
  EXPECT_EQ(fault("runs_on = \"a\"\nruns_on = \n").substr(0, 14), "config.toml:2:");
  EXPECT_NE(tests::fault_of([&] {
              SettingsFiles(folder_.path(), folder_.path() / "x").all();
            }).find("is no regular file"),
            std::string::npos);
}

TEST_F(SettingsTest, OfTheDocumentedExampleAreRead) {
  const Settings settings = read(tests::example_in("configuration.md"));
  EXPECT_EQ(settings.runs_on, "@lab");
  EXPECT_EQ(settings.groups.size(), 3u);
  EXPECT_EQ(settings.connect_timeout, milliseconds(5000));
  EXPECT_EQ(settings.width, 256u);
  EXPECT_EQ(settings.nproc_per_node, "auto");
  EXPECT_EQ(settings.exclude.size(), 2u);
  EXPECT_EQ(settings.environment.size(), 2u);
}

}  // namespace
}  // namespace dtool::cli
