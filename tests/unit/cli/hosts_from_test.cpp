// SPDX-License-Identifier: MIT
// The hosts of groups that stand elsewhere.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>

#include "cli/settings.h"
#include "tests/unit/fault.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::cli {
namespace {

using tests::fault_of;

struct HostsFrom : testing::Test {
  std::string of_file(const std::string& from, const std::string& text,
                      const std::string& only = "", const std::string& name = "file") {
    return hosts_from({"", from, folder.write(name, text).string(), only});
  }
  /// The fault without the file's own name.
  std::string fault(const std::string& from, const std::string& text, const std::string& only = "",
                    const std::string& name = "file") {
    const std::string said = fault_of([&] { of_file(from, text, only, name); });
    const std::string before = from + " " + (folder.path() / name).string() + ": ";
    return said.starts_with(before) ? said.substr(before.size()) : said;
  }
  std::string yaml(const std::string& text, const std::string& only = "") {
    return of_file("ansible", text, only, "lab.yml");
  }
  std::string yaml_fault(const std::string& text, const std::string& only = "") {
    return fault("ansible", text, only, "lab.yml");
  }

  tests::TemporaryFolder folder;
  tests::TemporaryVariable home{"HOME", folder.path()};
};

TEST_F(HostsFrom, ACommandAreThePatternsThatItPrints) {
  EXPECT_EQ(hosts_from({"", "command", "echo 'gpu[1-3] login'; echo gpu2; echo ann@x:22", ""}),
            "gpu1,gpu2,gpu3,login,ann@x:22");
}

TEST_F(HostsFrom, ACommandThatFailsIsNamedWithItsLastWords) {
  EXPECT_EQ(fault_of([] {
              hosts_from({"", "command", "echo h1; echo no >&2; exit 3", ""});
            }),
            "command echo h1; echo no >&2; exit 3: exit code 3: no");
  EXPECT_EQ(fault_of([] { hosts_from({"", "command", "true", ""}); }), "command true: no host");
}

TEST_F(HostsFrom, OutsideNamesNothingButHosts) {
  for (const std::string word : {"@lab", "@*", "a!b", "a&b", "a^b", "x!y@h", "a/b", "-oProxy=x",
                                 "$(x)", "n[1-", "n[1-1000000]"}) {
    const std::string command = "printf %s\\\\n '" + word + "'";
    EXPECT_NE(fault_of([&] {
                hosts_from({"", "command", command, ""});
              }).find(": "),
              std::string::npos)
        << word;
  }
}

TEST_F(HostsFrom, SlurmAreTheNodesOfAPartition) {
  const auto program = folder.write(
      "bin/sinfo",
      "#!/bin/sh\nprintf '%s\\n' \"$*\" >\"$HOME/asked\"\nprintf 'gpu1\\ngpu1\\ngpu2\\n'\n");
  ::chmod(program.c_str(), 0700);
  const tests::TemporaryVariable path("PATH", program.parent_path().string() + ":/usr/bin:/bin");
  EXPECT_EQ(hosts_from({"", "slurm", "", "debug"}), "gpu1,gpu2");
  EXPECT_EQ(folder.read("asked"), "--noheader --Node --format=%n --partition=debug\n");
  EXPECT_EQ(hosts_from({"", "slurm", "", ""}), "gpu1,gpu2");
  EXPECT_EQ(folder.read("asked"), "--noheader --Node --format=%n\n");
  const tests::TemporaryVariable none("PATH", folder.path().string());
  EXPECT_EQ(fault_of([] {
              hosts_from({"", "slurm", "", ""});
            }),
            "slurm: sinfo is not installed on this machine");
}

TEST_F(HostsFrom, SshConfigAreTheNamesWithoutWildcards) {
  folder.write(".ssh/more", "Host inner\n");
  folder.write(".ssh/config",
               "Host gpu1 gpu2 *.lab !gpu9 gpu?\n  User ann\nHost *\nMatch user x\n"
               "Match !originalhost no all\nHost gpu1 last\nInclude more\n");
  EXPECT_EQ(hosts_from({"", "ssh_config", "", ""}), "gpu1,gpu2,last,inner");
  folder.write(".ssh/config", "Host a/b\n");
  EXPECT_NE(fault_of([] {
              hosts_from({"", "ssh_config", "", ""});
            }).find("'a/b' is not a host"),
            std::string::npos);
}

TEST_F(HostsFrom, GendersAreTheHostsWithAnAttribute) {
  const std::string text =
      "# the lab\n\ngpu[1-3],login   gpu,disk=2\ngpu4\tgpu,disk=10 # new\nstore disk=2,%n\nbare\n";
  EXPECT_EQ(of_file("genders", text), "gpu1,gpu2,gpu3,login,gpu4,store,bare");
  EXPECT_EQ(of_file("genders", text, "gpu"), "gpu1,gpu2,gpu3,login,gpu4");
  EXPECT_EQ(of_file("genders", text, "disk=2"), "gpu1,gpu2,gpu3,login,store");
  EXPECT_EQ(of_file("genders", text, "disk"), "gpu1,gpu2,gpu3,login,gpu4,store");
  EXPECT_EQ(fault("genders", text, "dis"), "no host has dis");
  EXPECT_EQ(fault("genders", "a x\nb[1- x\n"),
            "line 2: host pattern 'b[1-': '[' has no partner\nhint: ']' closes it, as in "
            "'gpu[1-8]'");
}

TEST_F(HostsFrom, AnInventoryInIniHasGroupsInGroups) {
  const std::string text =
      "; the lab\nalone ansible_host=10.0.0.9 # of ann\n"
      "[web]\nwww[01:03].lab\nann[0:4:2]:2222\n\n"
      "[web:vars]\nansible_user=nobody\n[db]\r\ndb1 ansible_user=\"ann\" ansible_port=2200\r\n"
      "here ansible_connection=local\ndb1\n"
      "[all_of_it:children]\ndb\nweb\nall_of_it\n";
  EXPECT_EQ(of_file("ansible", text),
            "10.0.0.9,www01.lab,www02.lab,www03.lab,ann0:2222,ann2:2222,ann4:2222,ann@db1:2200,"
            "local");
  EXPECT_EQ(of_file("ansible", text, "db"), "ann@db1:2200,local");
  EXPECT_EQ(of_file("ansible", text, "all_of_it"),
            "ann@db1:2200,local,www01.lab,www02.lab,www03.lab,ann0:2222,ann2:2222,ann4:2222");
  EXPECT_EQ(of_file("ansible", text, "ungrouped"), "10.0.0.9");
  EXPECT_EQ(fault("ansible", text, "wbe"),
            "it has no group 'wbe'\nhint: it has all, all_of_it, db, ungrouped, web");
  EXPECT_EQ(of_file("ansible", "[2001:db8::1]:22\n[fe80::1]\n"), "[2001:db8::1]:22,fe80::1");
}

TEST_F(HostsFrom, AnInventoryInIniIsRefusedByItsLine) {
  EXPECT_EQ(fault("ansible", "a\n[b:hosts]\n"),
            "line 2: '[b:hosts]' is no section of an inventory");
  EXPECT_EQ(fault("ansible", "a x\n"), "line 1: 'x' is no NAME=value");
  EXPECT_EQ(fault("ansible", "n[a:f]\n"),
            "line 1: 'n[a:f]' has a range of letters\nhint: name each host");
  EXPECT_EQ(fault("ansible", "a ansible_port=0\n"),
            "ansible_port '0' of a is not a number from 1 to 65535");
  EXPECT_NE(fault("ansible", "a ansible_host={{ip}}\n").find("'{{ip}}' is not a host"),
            std::string::npos);
  EXPECT_NE(fault("ansible", "a ansible_user='x,b'\n").find("a user name does not hold ','"),
            std::string::npos);
  EXPECT_EQ(fault("ansible", "[a]\n"), "no host");
  EXPECT_NE(fault("ansible", "a 'b\n").find("line 1: "), std::string::npos);
}

TEST_F(HostsFrom, AnInventoryInYamlHasGroupsInGroups) {
  const std::string text =
      "---\n# the lab\nall:\n  vars:\n    ansible_user: nobody\n    list:\n    - {a: b}\n"
      "  hosts:\n    alone:\n"
      "      ansible_host: 10.0.0.9   # of ann\n"
      "      note: it's {odd}\n      tags:\n      - one\n      - two\n      text: |\n        "
      "hosts:\n"
      "          no:\n"
      "  children:\n    web:\n      hosts:\n        www[01:03].lab: {}\n        \"ann[0:4:2]\":\n"
      "          ansible_port: \"2222\"\n"
      "    all_of_it:\n      children:\n        web:\n        db:\n"
      "db:\n  hosts:\n    db1: null\n    db2:\n      ansible_user: ann\n      disks: [a,\n        "
      "b]\n";
  EXPECT_EQ(yaml(text),
            "10.0.0.9,www01.lab,www02.lab,www03.lab,ann0:2222,ann2:2222,ann4:2222,db1,"
            "ann@db2");
  EXPECT_EQ(yaml(text, "db"), "db1,ann@db2");
  EXPECT_EQ(yaml(text, "all_of_it"),
            "www01.lab,www02.lab,www03.lab,ann0:2222,ann2:2222,ann4:2222,db1,ann@db2");
}

TEST_F(HostsFrom, AnInventoryInYamlIsRefusedByItsLine) {
  const std::string hint =
      "\nhint: dtool reads YAML that has one key a line, and an inventory in Ansible's INI";
  EXPECT_EQ(yaml_fault("all:\n  hosts: {a: , b: }\n"),
            "line 2: 'hosts' has the value '{a:', where names stand");
  EXPECT_EQ(yaml_fault("all:\n  hosts:\n    a\n"), "line 3: 'a' is no key of an inventory" + hint);
  EXPECT_EQ(yaml_fault("all:\n  hosts:\n  - a: x\n"),
            "line 3: '- a: x' is no key of an inventory" + hint);
  EXPECT_EQ(yaml_fault("{all: {hosts: {a: }}}\n"),
            "line 1: '{all: {hosts: {a: }}}' is no key of an inventory" + hint);
  EXPECT_EQ(yaml_fault("all:\n  host:\n    a:\n"),
            "line 2: 'host' is neither hosts, children nor vars");
  EXPECT_EQ(yaml_fault("plugin: aws_ec2\n"),
            "line 1: 'plugin' has the value 'aws_ec2', where names stand");
  EXPECT_NE(yaml_fault("all:\n\thosts:\n").find("line 2: "), std::string::npos);
}

TEST_F(HostsFrom, AFileThatCannotBeReadIsNamed) {
  const std::string missing = (folder.path() / "missing").string();
  EXPECT_EQ(fault_of([&] {
              hosts_from({"", "genders", missing, ""});
            }),
            "genders " + missing + ": " + missing + ": cannot be read: No such file or directory");
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  EXPECT_NE(fault_of([&] {
              hosts_from({"", "ansible", (folder.path() / "pipe").string(), ""});
            }).find("no regular file"),
            std::string::npos);
}

}  // namespace
}  // namespace dtool::cli
