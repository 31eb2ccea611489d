// SPDX-License-Identifier: MIT
// Killfiles as text: there and back, cut short, edited.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "killfiles/killfile.h"
#include "tests/unit/documented_example.h"
#include "tests/unit/fault.h"

namespace dtool::killfiles {
namespace {

using tests::fault_of;

Machine machine(int id, const std::string& host) {
  return {id,
          host,
          "dtool_20261121_machine" + std::to_string(id),
          state_folder("20261121-034512-x7Qa", id),
          "~/code/log",
          ""};
}

Killfile example() {
  Killfile killfile;
  killfile.run_id = "20261121-034512-x7Qa";
  killfile.created = "2026-11-21T03:45:12Z";
  killfile.launcher = "ann@desk";
  killfile.command_line = {"run", "mnist.toml", "--config_kwargs", "{\"train\":{\"epochs\":3}}"};
  killfile.what = "mnist";
  killfile.seed = 12345;
  killfile.listener = "10.0.0.1:29500";
  killfile.nproc_per_node = 2;
  killfile.code_path = "/home/ann/code";
  killfile.on_failure = "stop";
  killfile.max_restarts = 2;
  killfile.coordinator = "10.0.0.1:23117";
  killfile.ssh_config_file = "/home/ann/.ssh/lab";
  killfile.ssh_settings = {{"Port", "2222"}, {"IdentityFile", "/a=b"}};
  killfile.machines = {machine(0, "ann@gpu01:2222"), machine(1, "[fe80::1]:22")};
  killfile.machines[1].output_folder = "/data/out";
  killfile.machines[0].identity = {"0123456789abcdef0123456789abcdef", "gpu01",
                                   "5f0c91aa-1111-4222-8333-444455556666", "4026531836",
                                   "ssh-ed25519 SHA256:" + std::string(43, 'k')};
  return killfile;
}

std::string fault(const std::string& text) {
  return fault_of([&] { parse(text, "f"); });
}

// The example's text with one thing put in place of another.
std::string edited(const std::string& from, const std::string& to) {
  std::string text = to_text(example());
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

/// `f:LINE:`, the line being the one that begins with the words.
std::string at_line(const std::string& text, const std::string& words) {
  const std::size_t place = text.find("\n" + words) + 1;
  const auto before = text.begin() + static_cast<std::ptrdiff_t>(place);
  return "f:" + std::to_string(1 + std::count(text.begin(), before, '\n')) + ":";
}

TEST(KillfileText, ReadsBackToAnEqualValue) {
  EXPECT_EQ(parse(to_text(example()), "f"), example());
}

TEST(KillfileText, ReadsBackWithNothingInIt) {
  Killfile empty;
  empty.run_id = "a";
  EXPECT_EQ(parse(to_text(empty), "f"), empty);
  empty.kind = RunKind::config;
  EXPECT_EQ(parse(to_text(empty), "f"), empty);
}

TEST(KillfileText, KeepsEverySeed) {
  for (const std::uint64_t seed :
       {0ull, 1ull, 9223372036854775807ull, 9223372036854775808ull, 18446744073709551615ull}) {
    Killfile killfile = example();
    killfile.seed = seed;
    EXPECT_EQ(parse(to_text(killfile), "f").seed, seed);
  }
  EXPECT_EQ(fault(edited("seed = 12345", "seed = \"0018446744073709551615\"")),
            at_line(to_text(example()), "seed") +
                "8: seed: '0018446744073709551615' is no number from 0 to 18446744073709551615");
  for (const auto& [largest, line] : std::vector<std::pair<std::uint64_t, std::string>>{
           {9223372036854775807ull, "\nseed = 9223372036854775807\n"},
           {9223372036854775808ull, "\nseed = \"9223372036854775808\"\n"}}) {
    Killfile killfile = example();
    killfile.seed = largest;
    EXPECT_NE(to_text(killfile).find(line), std::string::npos) << "TOML's numbers are signed";
  }
}

std::string random_bytes(std::mt19937& random) {
  std::string bytes;
  for (unsigned length = random() % 12; length > 0; --length) {
    bytes +=
        static_cast<char>(random() % 3 == 0 ? random() % 256 : "\"\\\n#=[]{}' a~"[random() % 14]);
  }
  return bytes;
}

Killfile random_killfile(std::mt19937& random) {
  Killfile killfile;
  killfile.run_id = "r" + std::to_string(random());
  killfile.kind = random() % 2 == 0 ? RunKind::run : RunKind::config;
  killfile.launcher = random_bytes(random);
  for (unsigned count = random() % 4; count > 0; --count) {
    killfile.command_line.push_back(random_bytes(random));
    killfile.ssh_settings.emplace_back("Key", random_bytes(random));
  }
  killfile.what = random_bytes(random);
  if (random() % 2 == 0) killfile.seed = (std::uint64_t{random()} << 32) + random();
  killfile.listener = random_bytes(random);
  killfile.code_path = random_bytes(random);
  killfile.ssh_config_file = random_bytes(random);
  const int machines = static_cast<int>(random() % 4);
  for (int id = 0; id < machines; ++id) {
    killfile.machines.push_back({id, random_bytes(random), random_bytes(random),
                                 random() % 2 == 0 ? "" : state_folder(killfile.run_id, id),
                                 "/" + random_bytes(random), ""});
  }
  return killfile;
}

TEST(KillfileText, ReadsBackWhateverBytesStandInIt) {
  std::mt19937 random(17);
  for (int round = 0; round < 500; ++round) {
    const Killfile killfile = random_killfile(random);
    EXPECT_EQ(parse(to_text(killfile), "f"), killfile) << to_text(killfile);
  }
}

void expect_no_cut_passes(const Killfile& killfile) {
  const std::string text = to_text(killfile);
  int refused = 0;
  for (std::size_t length = 0; length < text.size(); ++length) {
    try {
      EXPECT_EQ(parse(text.substr(0, length), "f"), killfile) << "cut after " << length << " bytes";
    } catch (const std::invalid_argument&) {
      ++refused;
    }
  }
  EXPECT_GE(refused + 1, static_cast<int>(text.size())) << "only the last line end may be missed";
}

TEST(KillfileText, CutShortAnywhereIsAnErrorOrEqual) {
  expect_no_cut_passes(example());
  Killfile many = example();
  many.machines.clear();
  for (int id = 0; id < 12; ++id) many.machines.push_back(machine(id, "gpu" + std::to_string(id)));
  expect_no_cut_passes(many);
  std::mt19937 random(23);
  for (int round = 0; round < 5; ++round) expect_no_cut_passes(random_killfile(random));
}

TEST(KillfileText, CutShortBetweenMachinesSaysHowManyItShouldName) {
  const std::string text = to_text(example());
  EXPECT_EQ(fault(text.substr(0, text.rfind("\n[[machine]]"))),
            at_line(text, "machine_count") +
                "17: machine_count: the file should name 2 machines and names 1\n"
                "hint: the file was edited or cut short");
}

TEST(KillfileText, TheRunsBeforeItAreRunsOrItIsRefused) {
  EXPECT_EQ(to_text(example()).find("chain"), std::string::npos) << "older versions can end it";
  Killfile killfile = example();
  killfile.chain = {"a_1", "b_2"};
  EXPECT_EQ(parse(to_text(killfile), "f"), killfile);
  const std::string spoilt = fault(edited("coordinator =", "chain = [\"../a\"]\ncoordinator ="));
  EXPECT_NE(spoilt.find("'../a' is no run id"), std::string::npos) << spoilt;
}

TEST(KillfileText, WithAnUnknownKeyNamesTheNearest) {
  const std::string text = edited("launcher =", "lancher =");
  EXPECT_EQ(fault(text), at_line(text, "lancher") +
                             "1: unknown key 'lancher'\n"
                             "hint: did you mean 'launcher'? (or a newer dtool wrote the file)");
  EXPECT_NE(fault(edited("session =", "sesion =")).find("unknown key 'machine[0].sesion'"),
            std::string::npos);
}

TEST(KillfileText, WithoutAKeyNamesIt) {
  const std::string text = to_text(example());
  for (const std::string key : {"format",
                                "run_id",
                                "kind",
                                "created",
                                "launcher",
                                "what",
                                "command_line",
                                "code_path",
                                "distributed_ip_and_port",
                                "nproc_per_node",
                                "ssh_config_file",
                                "ssh_settings",
                                "machine_count",
                                "id",
                                "host",
                                "machine_id",
                                "host_name",
                                "boot_id",
                                "process_namespace",
                                "host_key",
                                "session",
                                "state_folder",
                                "log",
                                "output_folder"}) {
    const std::size_t begin = text.find("\n" + key + " = ") + 1;
    const std::string without = text.substr(0, begin) + text.substr(text.find('\n', begin) + 1);
    EXPECT_NE(fault(without).find(key + ": is missing"), std::string::npos) << fault(without);
  }
  for (const std::string key :
       {"seed", "on_failure", "max_restarts", "coordinator", "launched_by", "job", "ended"}) {
    const std::size_t begin = text.find("\n" + key + " = ") + 1;
    EXPECT_EQ(fault(text.substr(0, begin) + text.substr(text.find('\n', begin) + 1)), "") << key;
  }
}

TEST(KillfileText, WithAValueThatNoRunHasIsRefused) {
  const auto has = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks: " << part;
  };
  has(fault(edited("20261121-034512-x7Qa\"", "a/../b\"")), "run_id: 'a/../b' is no run id");
  has(fault(edited("seed = 12345", "seed = \"\"")), "seed: '' is no number");
  has(fault(edited("seed = 12345", "seed = \"1x\"")), "seed: '1x' is no number");
  has(fault(edited("seed = 12345", "seed = \"1:\"")), "seed: '1:' is no number");
  has(fault(edited("2026-11-21T03:45:12Z", "2026-11-21T03:45:1:Z")), "is no time such as");
  has(fault(edited("2026-11-21T03:45:12Z", "2026-11-21T03:45:1/Z")), "is no time such as");
  has(fault(edited("2026-11-21T03:45:12Z", "2026-11-21 03:45:12Z")), "is no time such as");
  has(fault(edited("nproc_per_node = 2", "nproc_per_node = 2147483648")),
      "nproc_per_node: 2147483648 is out of range");
  EXPECT_EQ(fault(edited("nproc_per_node = 2", "nproc_per_node = 2147483647")), "");
  EXPECT_EQ(fault(edited("2026-11-21T03:45:12Z", "2909-09-09T09:09:09Z")), "");
  has(fault(edited("coordinator =", "rerun_of = \"../a\"\ncoordinator =")),
      "rerun_of: '../a' is no run id");
  has(fault(edited("kind = \"run\"", "kind = \"walk\"")), "'walk' is neither 'run' nor 'config'");
  has(fault(edited("2026-11-21T03:45:12Z", "yesterday")), "'yesterday' is no time such as");
  has(fault(edited("seed = 12345", "seed = -1")), "seed: '-1' is no number");
  has(fault(edited("seed = 12345", "seed = \"18446744073709551616\"")), "is no number");
  has(fault(edited("seed = 12345", "seed = true")),
      "seed must be a whole number, not true or false");
  has(fault(edited("nproc_per_node = 2", "nproc_per_node = -2")),
      "nproc_per_node: -2 is out of range");
  has(fault(edited("on_failure = \"stop\"", "on_failure = \"wait\"")),
      "on_failure: 'wait' is neither 'stop' nor 'leave'");
  has(fault(edited("max_restarts = 2", "max_restarts = -1")), "max_restarts: -1 is out of range");
  has(fault(edited("machine_count = 2", "machine_count = 3")),
      "should name 3 machines and names 2");
  has(fault(edited("id = 1", "id = 0")), "machine[1].id: two machines have the id 0");
  has(fault(edited("\"~/.dtool/runs/20261121-034512-x7Qa/machine1\"", "\"runs/20261121\"")),
      "machine[1].state_folder: 'runs/20261121' begins neither with '/' nor with '~/'");
  has(fault(edited("x7Qa/machine1\"", "x7Qa/machine0\"")),
      "x7Qa/machine0' is not ~/.dtool/runs/20261121-034512-x7Qa/machine1");
  has(fault(edited("\"Port=2222\"", "\"Port\"")), "'Port' is not of the form Keyword=value");
  has(fault(edited("format = 1", "format = 2")), "format: is 2, and this dtool reads 1");
  has(fault(edited("ended = \"\"", "ended = \"now\"")), "'now' is no time such as");
  has(fault(edited("host_name = \"gpu01\"", "host_name = \"a b\"")),
      "machine[0].machine_id: and what follows are of no host");
  has(fault(edited("what = \"mnist\"", "what = 3")), "what must be a string, not a whole number");
  has(fault(""), "is missing");
}

TEST(KillfileText, IsNotWrittenWhereItWouldNotReadBack) {
  const auto refused = [](auto change) {
    Killfile killfile = example();
    change(killfile);
    return fault_of([&] { to_text(killfile); }) != "";
  };
  EXPECT_TRUE(refused([](Killfile& killfile) { killfile.run_id = ""; }));
  EXPECT_TRUE(refused([](Killfile& killfile) { killfile.run_id = "a\nb"; }));
  EXPECT_TRUE(refused([](Killfile& killfile) { killfile.machines[1].id = 0; }));
  EXPECT_TRUE(refused([](Killfile& killfile) { killfile.machines[1].log = "log"; }));
  EXPECT_TRUE(refused([](Killfile& killfile) { killfile.ssh_settings = {{"a=b", "c"}}; }));
}

TEST(RunId, HoldsLettersDigitsAndThreeSigns) {
  for (const std::string& id :
       std::vector<std::string>{"a", "20261121-034512-x7Qa", "A.b_c-d", std::string(200, 'x')}) {
    EXPECT_TRUE(is_run_id(id)) << id;
  }
  for (const std::string& id :
       std::vector<std::string>{"", ".", "..", ".a", "-a", "_a", "a/b", "a b", "a\n", "a*",
                                "\xc3\xa4", std::string(201, 'x')}) {
    EXPECT_FALSE(is_run_id(id)) << id;
  }
}

/// The promise of docs/killfile.md, "Between versions": the file stays as dtool 0.1.0 wrote it.
TEST(KillfileText, OneOfVersion010IsReadAndSaysNothingOfTheHost) {
  const Killfile killfile = read(DTOOL_SOURCE_DIR "/tests/unit/killfiles/killfile_of_0.1.0.toml");
  EXPECT_EQ(killfile.run_id, "sleep_20261120-101112-aabbcc");
  EXPECT_EQ(killfile.created, "2026-11-20T10:11:12Z");
  EXPECT_EQ(killfile.seed, 7U);
  EXPECT_EQ(killfile.command_line.size(), 7U);
  ASSERT_EQ(killfile.machines.size(), 1U);
  EXPECT_EQ(killfile.machines[0].host, "gpu01");
  EXPECT_EQ(killfile.machines[0].session, "dtool_sleep_20261120-101112-aabbcc_machine0");
  EXPECT_EQ(killfile.machines[0].state_folder,
            "~/.dtool/runs/sleep_20261120-101112-aabbcc/machine0");
  EXPECT_FALSE(killfile.machines[0].identity.is_known());
  EXPECT_EQ(killfile.ended, "");
  EXPECT_EQ(parse(to_text(killfile), "f"), killfile);
}

TEST(KillfileText, TheDocumentedExampleIsOne) {
  const Killfile killfile = parse(tests::example_in("killfile.md"), "killfile.md");
  EXPECT_EQ(killfile.run_id, "mnist_20261121-034512-3fa91c");
  EXPECT_EQ(killfile.machines.size(), 2u);
  EXPECT_EQ(to_text(killfile), tests::example_in("killfile.md")) << "as dtool writes it";
}

}  // namespace
}  // namespace dtool::killfiles
