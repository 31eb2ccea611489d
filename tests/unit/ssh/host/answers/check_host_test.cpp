// SPDX-License-Identifier: MIT
// What a host finds out about itself: programs, folders, the environment, the trainer.
#include "ssh/host/answers/answers.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "killfiles/whole_file.h"
#include "ssh/host/answers/gpus.h"
#include "ssh/host/answers/survey.h"
#include "ssh/host/child.h"
#include "ssh/host/network.h"
#include "ssh/wire/check.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

using tests::TemporaryFolder;
using tests::TemporaryVariable;

/// A home of its own, and a PATH that tests may take away.
class HostCheck : public testing::Test {
 protected:
  /// In a process of its own, whose variables the environment may change.
  static CheckReply check(const CheckRequest& request) {
    CheckReply reply;
    const std::string path = std::getenv("PATH");
    const std::string home = std::getenv("HOME");
    reply = check_host(request);
    ::setenv("PATH", path.c_str(), 1);
    ::setenv("HOME", home.c_str(), 1);
    return reply;
  }

  void add_program(const std::string& name, const std::string& lines) const {
    const auto file = home_.write(name, "#!/bin/sh\n" + lines);
    ::chmod(file.c_str(), 0755);
  }

  TemporaryFolder home_;
  TemporaryVariable variable_{"HOME", home_.path().string()};
};

TEST_F(HostCheck, MakesTheRunsFolderForTheUserAlone) {
  CheckRequest request;
  request.run_folder = "~/.dtool/runs/x_1";
  EXPECT_FALSE(check(request).is_home_read_only);
  EXPECT_EQ(std::filesystem::status(home_.path() / ".dtool/runs/x_1").permissions(),
            std::filesystem::perms::owner_all);
}

TEST_F(HostCheck, RemovesEmptyFoldersOfRunsAfterADayAndNothingElse) {
  const auto make = [this](const std::string& name, std::chrono::hours age) {
    const auto folder = home_.path() / ".dtool/runs" / name;
    std::filesystem::create_directories(folder);
    std::filesystem::last_write_time(folder, std::filesystem::file_time_type::clock::now() - age);
    return folder;
  };
  home_.write(".dtool/runs/full/file", "x");
  const auto full = make("full", std::chrono::hours(48));
  const auto old = make("old", std::chrono::hours(48));
  const auto young = make("young", std::chrono::hours(1));
  CheckRequest request;
  request.run_folder = "~/.dtool/runs/x_1";
  check(request);
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(young));
  EXPECT_TRUE(std::filesystem::exists(full));
}

TEST_F(HostCheck, TellsOfAHomeThatTakesNothingWithoutMakingAnything) {
  EXPECT_FALSE(check({}).is_home_read_only);
  EXPECT_FALSE(std::filesystem::exists(home_.path() / ".dtool"));
  home_.write(".dtool", "");
  EXPECT_TRUE(check({}).is_home_read_only);
}

TEST_F(HostCheck, TellsOfARunsFolderThatCannotBeMade) {
  home_.write(".dtool", "");
  CheckRequest request;
  request.run_folder = "~/.dtool/runs/x_1";
  EXPECT_TRUE(check(request).is_home_read_only);
}

TEST_F(HostCheck, ARunsFolderIsOldADayBeforeTheNewOne) {
  const auto make = [this](const std::string& name, std::chrono::seconds age) {
    const auto folder = home_.path() / ".dtool/runs" / name;
    std::filesystem::create_directories(folder);
    const auto now = std::chrono::file_clock::from_sys(std::chrono::sys_seconds(1'700'000'000s));
    std::filesystem::last_write_time(folder, now - age);
    return folder;
  };
  make("x_1", 0s);
  const auto young = make("young", 24h);
  const auto old = make("old", 24h + 1s);
  CheckRequest request;
  request.run_folder = "~/.dtool/runs/x_1";
  check(request);
  EXPECT_TRUE(std::filesystem::exists(young));
  EXPECT_FALSE(std::filesystem::exists(old));
}

TEST(TooFewInodes, AreLessThanAHundred) {
  EXPECT_EQ(too_few_inodes(std::nullopt), std::nullopt);
  EXPECT_EQ(too_few_inodes(100), std::nullopt);
  EXPECT_EQ(too_few_inodes(99), 99U);
  EXPECT_EQ(too_few_inodes(0), 0U);
}

TEST(EndsAtLogout, IfAnySettingOfLogindSaysSoUnlessTheUserLingers) {
  const TemporaryFolder folder;
  const std::string mark = (folder.path() / "ann").string();
  const auto ends = [&](const std::string& value) {
    folder.write("logind.conf", "[Login]\n" + value);
    return ends_at_logout(folder.path(), mark);
  };
  EXPECT_FALSE(ends_at_logout(folder.path(), mark)) << "no settings";
  for (const char* yes : {"yes", "true", "1", "on", " yes # now"})
    EXPECT_TRUE(ends(std::string("KillUserProcesses=") + yes)) << yes;
  for (const char* no : {"KillUserProcesses=no\n", "#KillUserProcesses=yes\n",
                         "KillExcludeUsers=1\n", "KillUserProcesses=\n"})
    EXPECT_FALSE(ends(no)) << no;
  folder.write("logind.conf.d/a.conf.old", "KillUserProcesses=yes\n");
  EXPECT_FALSE(ends("KillUserProcesses=no")) << "that is no settings' name";
  folder.write("logind.conf.d/a.conf", "KillUserProcesses=yes");
  folder.write("logind.conf.d/b.conf", "KillUserProcesses=no");
  EXPECT_TRUE(ends("KillUserProcesses=no"));
  folder.write("ann", "");
  EXPECT_FALSE(ends("KillUserProcesses=yes"));
}

TEST_F(HostCheck, NamesAMissingCodeFolder) {
  CheckRequest request;
  request.code_folder = "~/code";
  EXPECT_EQ(check(request).missing_code, "");
  request.code_must_exist = true;
  EXPECT_EQ(check(request).missing_code, home_.path().string() + "/code");
  home_.write("code/train.py");
  EXPECT_EQ(check(request).missing_code, "");
}

TEST_F(HostCheck, NamesWhoCouldChangeWhatTheRunUses) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give files to someone else";
  constexpr uid_t kOther = 54321;
  const auto give = [this](const std::string& name) {
    const auto file = home_.write(name + "/file");
    const std::string folder = file.parent_path();
    EXPECT_EQ(::chmod(file.parent_path().parent_path().c_str(), 0777), 0);
    EXPECT_EQ(::chown(folder.c_str(), kOther, kOther), 0);
    return folder + " belongs to " + std::to_string(kOther);
  };
  EXPECT_EQ(check({}).stranger, "");
  const std::string kept = give(".dtool/trainers");
  const std::string code = give("shared/code");
  const std::string outputs = give("shared/outputs");
  CheckRequest request;
  EXPECT_EQ(check(request).stranger, kept + ", who could change what dtool keeps there");
  request.output_folder = "~/shared/outputs";
  EXPECT_EQ(check(request).stranger,
            "the folder " + outputs + ", who could change the outputs there");
  request.code_folder = "~/shared/code";
  EXPECT_EQ(check(request).stranger, "the folder " + code + ", who could put other code there");
}

TEST_F(HostCheck, ScriptsNeedProgramsOfTheirOwn) {
  add_program("bin/bash", "exec " + find_program("bash") + " \"$@\"\n");
  const TemporaryVariable path("PATH", home_.path().string() + "/bin");
  CheckRequest request;
  const auto needs_awk = [&] {
    const auto programs = check(request).lacks.programs;
    return std::ranges::count(programs, "awk") == 1;
  };
  EXPECT_FALSE(needs_awk());
  request.wants_torchrun = true;
  EXPECT_TRUE(needs_awk());
  request.wants_torchrun = false;
  request.environment.text = "exit\n";
  EXPECT_TRUE(needs_awk());
}

TEST_F(HostCheck, ScreenIsTriedByASurveyAlone) {
  add_program("bin/screen", "echo broken\n");
  const TemporaryVariable path("PATH", home_.path().string() + "/bin:" + std::getenv("PATH"));
  CheckRequest request;
  EXPECT_EQ(check(request).lacks.screen_fault, "");
  EXPECT_FALSE(check(request).survey);
  request.is_survey = true;
  request.code_folder = "~/no/such/folder";
  const CheckReply reply = check(request);
  EXPECT_EQ(reply.lacks.screen_fault, "broken");
  EXPECT_GT(reply.survey->free_code, 0) << "of the disk where it would be";
}

TEST_F(HostCheck, TorchrunIsThereByItselfOrByPyTorchOrInsideTheEnvironment) {
  add_program("bin/bash", "exec " + find_program("bash") + " \"$@\"\n");
  add_program("bin/sh", "exec " + find_program("sh") + " \"$@\"\n");
  const TemporaryVariable path("PATH", home_.path().string() + "/bin");
  CheckRequest request;
  EXPECT_FALSE(check(request).lacks_torchrun) << "it is not wanted";
  request.wants_torchrun = true;
  EXPECT_TRUE(check(request).lacks_torchrun);
  request.environment.text = "printf 'ready\nx\\0HOME=%s\\0PATH=%s\\0' \"$HOME\" \"$PATH\"\n";
  EXPECT_TRUE(check(request).lacks_torchrun) << "no words stand before a program";
  request.environment.text = "printf 'ready\n1\\0env\\0HOME=%s\\0' \"$HOME\"\n";
  EXPECT_FALSE(check(request).lacks_torchrun) << "nobody can look inside from here";
  request.environment.text.clear();
  add_program("bin/python3", "printf '\\n/torch\\0'\n");
  EXPECT_FALSE(check(request).lacks_torchrun);
  std::filesystem::remove(home_.path() / "bin/python3");
  add_program("bin/torchrun", "");
  EXPECT_FALSE(check(request).lacks_torchrun);
}

TEST_F(HostCheck, APortIsTakenIfSomebodyListensThere) {
  CheckRequest request;
  const Descriptor listener = listen_on_free_port();
  request.port = port_of(listener);
  CheckReply reply = check(request);
  EXPECT_TRUE(reply.is_port_taken);
  EXPECT_EQ(reply.port, request.port);
  for (const int port : {0, 1}) {
    request.port = port;
    reply = check(request);
    EXPECT_FALSE(reply.is_port_taken);
    EXPECT_FALSE(reply.lacks_port);
  }
  EXPECT_EQ(reply.port, 1);
}

TEST_F(HostCheck, TheSessionOfARunThatIsSupervisedGetsAPortOfItsOwn) {
  CheckRequest request;
  request.port = 0;
  request.is_supervised = true;
  EXPECT_EQ(check(request).coordinator_port, 0) << "no run";
  request.run_folder = "~/.dtool/runs/x_1";
  const CheckReply reply = check(request);
  EXPECT_GE(reply.coordinator_port, 20000);
  EXPECT_NE(reply.coordinator_port, reply.port);
  EXPECT_FALSE(reply.lacks_port);
  request.is_supervised = false;
  EXPECT_EQ(check(request).coordinator_port, 0);
}

TEST_F(HostCheck, FindsATrainerOfTheUsersOwnAndAsksItInTheReadiedEnvironment) {
  // The fault is said on two lines, and names the file that was made for it.
  add_program(".dtool/bin/dtool-trainer",
              "[ \"$1\" != --check ] || { echo \"bad: $2\"; echo $MARK >&2; exit 2; }\n"
              "echo \"dtool-trainer 9.8.7 $MARK $1\"\n");
  CheckRequest request;
  request.trainer = "/nowhere/dtool-trainer";
  request.trainer_version = "9.8.7";
  request.experiment.text = "x = 1";
  request.environment.text =
      "exec 5>&1 >/dev/null\necho noise\nexport MARK='a  b'\necho name=value >&5\n"
      "echo ready >&5\nprintf '1\\0env\\0' >&5\nprintf 'MARK=a  b\\0PATH=%s\\0HOME=%s\\0' "
      "\"$PATH\" \"$HOME\" >&5\n";
  const CheckReply reply = check(request);
  EXPECT_EQ(reply.trainer, home_.path().string() + "/.dtool/bin/dtool-trainer");
  EXPECT_EQ(reply.trainer_version, "dtool-trainer 9.8.7 a  b --self_check");
  EXPECT_EQ(reply.experiment_fault, "bad: experiment a b");
  EXPECT_EQ(reply.processor, "");
  EXPECT_EQ(reply.environment, "name=value\n");
  EXPECT_TRUE(reply.is_environment_ready);
}

TEST_F(HostCheck, RefusesAnEnvironmentOfWhichNotAllIsKept) {
  CheckRequest request;
  request.environment.text =
      "echo ready\nprintf '0\\0PATH=%s\\0HOME=%s\\0A=' \"$PATH\" \"$HOME\"\n"
      "head -c 1048576 /dev/zero | tr '\\0' x\n";
  const CheckReply reply = check(request);
  EXPECT_FALSE(reply.is_environment_ready);
  EXPECT_EQ(reply.environment, "bad_activate=the environment has more than 1 MiB of variables\n");
}

TEST_F(HostCheck, TakesTheFirstTrainerThatFitsAndTheBundleLast) {
  const std::string hash(64, 'a');
  CheckRequest request;
  request.trainer = "/nowhere/dtool-trainer";
  request.trainer_version = "9.8.7";
  request.bundle = hash;
  const std::string fit = "echo 'dtool-trainer 9.8.7 (x)'\n";
  add_program(".dtool/bin/dtool-trainer", "echo 'dtool-trainer 9.8.79 (x)'\n");
  EXPECT_FALSE(check(request).is_trainer_fit) << "of another version";
  add_program(".dtool/bin/dtool-trainer", fit + "echo missing: libx.so, GLIBC_2.99\nexit 1\n");
  CheckReply reply = check(request);
  EXPECT_EQ(reply.missing_libraries, "libx.so, GLIBC_2.99");
  EXPECT_NE(reply.processor, "");
  EXPECT_EQ(reply.libc.find("glibc 2."), 0U);
  add_program(".dtool/trainers/" + hash + "/dtool-trainer", fit);
  reply = check(request);
  EXPECT_EQ(reply.trainer, home_.path().string() + "/.dtool/trainers/" + hash + "/dtool-trainer");
  EXPECT_EQ(reply.missing_libraries, "");
  EXPECT_EQ(reply.processor, "");
  add_program(".dtool/bin/dtool-trainer", fit);
  EXPECT_EQ(check(request).trainer, home_.path().string() + "/.dtool/bin/dtool-trainer");
}

TEST_F(HostCheck, ABundleThatUsesAPyTorchIsTriedOnlyWithTheWantedOne) {
  const std::string hash(64, 'a');
  CheckRequest request;
  request.trainer = "/nowhere/dtool-trainer";
  request.trainer_version = "9.8.7";
  request.bundle = hash;
  request.bundle_pytorch = "2.9.1+cu130";
  add_program(".dtool/trainers/" + hash + "/dtool-trainer",
              "[ -n \"$DTOOL_PYTORCH\" ] || exit 1\n"
              "echo \"dtool-trainer 9.8.7 (of $DTOOL_PYTORCH)\"\n");
  const std::string torch = home_.path().string() + "/packages/torch";
  const TemporaryVariable used("DTOOL_PYTORCH", "");
  const TemporaryVariable path("PYTHONPATH", home_.path().string() + "/packages");
  home_.write("packages/torch/__init__.py", "");
  home_.write("packages/torch/version.py", "__version__ = '2.9.1+cu128'\n");
  CheckReply reply = check(request);
  EXPECT_FALSE(reply.is_trainer_fit);
  EXPECT_EQ(reply.trainer, "");
  EXPECT_EQ(reply.pytorch.folder, torch);
  EXPECT_EQ(reply.pytorch.version, "2.9.1+cu128");
  home_.write("packages/torch/version.py", "__version__ = '2.9.1+cu130'\n");
  reply = check(request);
  EXPECT_TRUE(reply.is_trainer_fit);
  EXPECT_EQ(reply.trainer_version, "dtool-trainer 9.8.7 (of " + torch + ")");
  EXPECT_EQ(reply.pytorch.folder, torch);
  // A trainer of the host's own has its libraries where it was built.
  add_program(".dtool/bin/dtool-trainer", "echo 'dtool-trainer 9.8.7 (x)'\n");
  EXPECT_EQ(check(request).pytorch.folder, "");
}

TEST_F(HostCheck, RemovesBundlesThatWereNotUsedForAMonth) {
  const auto bundle = [this](char letter, int days) {
    const std::filesystem::path folder = home_.path() / ".dtool/trainers" / std::string(64, letter);
    add_program(".dtool/trainers/" + std::string(64, letter) + "/dtool-trainer",
                "echo 'dtool-trainer 9.8.7 (x)'\n");
    add_program(".dtool/trainers/" + std::string(64, letter) + "/lib/libx.so", "");
    add_program(".dtool/trainers/" + std::string(64, letter) + "/lib/more/liby.so", "");
    const auto now = std::filesystem::file_time_type::clock::now();
    std::filesystem::last_write_time(folder, now - std::chrono::hours(24 * days));
    return folder;
  };
  const auto own = bundle('a', 40);
  const auto young = bundle('b', 29);
  const auto old = bundle('c', 31);
  const auto used = bundle('d', 31);
  const auto ended = bundle('e', 31);
  home_.write(".dtool/runs/r_1/machine0/script", "trainer=" + (used / "dtool-trainer").string());
  home_.write(".dtool/runs/r_2/machine0/script", "trainer=" + (ended / "dtool-trainer").string());
  home_.write(".dtool/runs/r_2/machine0/exit_code", "0");
  TemporaryVariable path("PATH", "/usr/bin:/bin");
  CheckRequest request;
  request.trainer = "/nowhere/dtool-trainer";
  request.trainer_version = "9.8.7";
  request.bundle = std::string(64, 'a');
  EXPECT_EQ(check(request).trainer, (own / "dtool-trainer").string());
  EXPECT_TRUE(std::filesystem::exists(own));
  EXPECT_TRUE(std::filesystem::exists(young));
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(used));
  EXPECT_FALSE(std::filesystem::exists(ended));
}

TEST_F(HostCheck, AnEnvironmentThatEndsItsShellIsNotReady) {
  CheckRequest request;
  request.trainer = "dtool-trainer";
  request.environment.text = "echo bad_activate=oh\nexit 3\n";
  const CheckReply reply = check(request);
  EXPECT_FALSE(reply.is_environment_ready);
  EXPECT_EQ(reply.environment, "bad_activate=oh\n");
  EXPECT_EQ(reply.trainer, "");
  EXPECT_EQ(reply.processor, "") << "no trainer was looked for";
  EXPECT_EQ(check({}).processor, "");
}

TEST_F(HostCheck, TheWayInTellsTheAddress) {
  CheckRequest request;
  EXPECT_EQ(check(request).address, "");
  request.port = 0;
  request.peer = "127.0.0.1";
  const TemporaryVariable connection("SSH_CONNECTION", "10.0.0.9 4242 10.0.0.1 22");
  EXPECT_EQ(check(request).address, "127.0.0.1");
  request.peer.clear();
  const CheckReply reply = check(request);
  EXPECT_EQ(reply.address, "10.0.0.1");
  EXPECT_GE(reply.port, 20000);
  EXPECT_EQ(reply.coordinator_port, 0);  // nothing is held without a run
  const TemporaryVariable none("SSH_CONNECTION", "");
  EXPECT_EQ(check(request).address, "127.0.0.1");
}

TEST_F(HostCheck, ARunGoesOnWhereAMachineOfItWasStartedAndHasNotEnded) {
  constexpr std::chrono::milliseconds kStep{20};
  start_detached({"/bin/sleep", "5"}, "/", Descriptor(), "x_1");
  home_.write(".dtool/runs/x_1/machine0/script", "");
  const auto goes_on = [this] {  // this host may have other runs
    return std::ranges::count(check({}).runs, std::string("x_1")) == 1;
  };
  for (int tries = 0; tries < 100 && !goes_on(); ++tries) pause(kStep);
  EXPECT_TRUE(goes_on());
  home_.write(".dtool/runs/x_1/machine0/exit_code", "0");
  EXPECT_FALSE(goes_on());
  std::filesystem::remove_all(home_.path() / ".dtool/runs/x_1/machine0");
  EXPECT_FALSE(goes_on()) << "it holds a port, and was not started";
}

TEST_F(HostCheck, GpusAreCountedByTheirDriversProgram) {
  add_program("bin/nvidia-smi",
              "case $1 in -L) echo 'GPU 0: A (UUID: GPU-aa)'; echo 'GPU 1: B (UUID: GPU-bb)';;\n"
              "*) echo no such field; exit 2;; esac\n");  // a driver that knows no MIG
  const TemporaryVariable path("PATH", home_.path().string() + "/bin:" + std::getenv("PATH"));
  CheckRequest request;
  EXPECT_EQ(check(request).gpus, 2);
  request.visible_gpus.cuda = "1";
  EXPECT_EQ(check(request).gpus, 1);
  request.visible_gpus.cuda = "GPU-bb,GPU-aa";
  EXPECT_EQ(check(request).gpus, 2);
  request.visible_gpus.cuda = "0,2";
  EXPECT_EQ(check(request).gpus, 1);
  request.visible_gpus.hip = "1";
  EXPECT_EQ(check(request).gpus, 1) << "another maker's variable";
  const TemporaryVariable of_the_host("CUDA_VISIBLE_DEVICES", "");
  EXPECT_EQ(check(request).gpus, 1);
  request.visible_gpus = {};
  EXPECT_EQ(check(request).gpus, 0);
}

TEST_F(HostCheck, TheDriversProgramIsAskedOnce) {
  add_program("bin/nvidia-smi",
              "echo \"$1\" >> " + (home_.path() / "asked").string() +
                  "\necho 'A, with a comma, 81559 MiB, 550.54, GPU-aa, Disabled'\n"
                  "echo 'A, with a comma, 81559 MiB, 550.54, GPU-bb, [N/A]'\n");
  const TemporaryVariable path("PATH", home_.path().string() + "/bin:" + std::getenv("PATH"));
  CheckRequest request;
  request.is_survey = true;
  const CheckReply reply = check(request);
  EXPECT_EQ(reply.gpus, 2);
  EXPECT_EQ(reply.hardware.gpus,
            (std::vector<std::string>{"A, with a comma, 81559 MiB", "A, with a comma, 81559 MiB"}));
  EXPECT_EQ(reply.hardware.driver, "550.54");
  EXPECT_EQ(reply.hardware.gpu_fault, "");
  const std::string asked = killfiles::read_whole(home_.path() / "asked");
  EXPECT_EQ(std::count(asked.begin(), asked.end(), '\n'), 1) << asked;
}

TEST_F(HostCheck, OfInstancesOneIsSeenAndBesideThemWholeGpus) {
  add_program("bin/nvidia-smi",
              "case $1 in -L) ;; *) for gpu in aa,Enabled bb,Disabled cc,Disabled; do "
              "echo \"A, 40960 MiB, 550.54, GPU-${gpu%,*}, ${gpu#*,}\"; done; exit;; esac\n"
              "echo 'GPU 0: A (UUID: GPU-aa)'\n"
              "echo '  MIG 1g.5gb      Device  0: (UUID: MIG-1)'\n"
              "echo '  MIG 1g.5gb      Device  1: (UUID: MIG-2)'\n"
              "echo 'GPU 1: B (UUID: GPU-bb)'\necho 'GPU 2: B (UUID: GPU-cc)'\n");
  const TemporaryVariable path("PATH", home_.path().string() + "/bin:" + std::getenv("PATH"));
  CheckRequest request;
  EXPECT_EQ(check(request).gpus, 1);
  request.visible_gpus.cuda = "MIG-1,MIG-2";
  EXPECT_EQ(check(request).gpus, 1);
  request.visible_gpus.cuda = "1,2";
  EXPECT_EQ(check(request).gpus, 2) << "whole GPUs";
  request.visible_gpus.cuda = "1,0";
  EXPECT_EQ(check(request).gpus, 1) << "an instance hides what is whole";

  const auto lack_of = [&](const std::string& gpus) {
    request.gpus = gpus;
    return check(request).gpu_lack;
  };
  EXPECT_EQ(lack_of("1,2"), "");
  EXPECT_EQ(lack_of("0"), "");
  EXPECT_EQ(lack_of("MIG-2"), "");
  EXPECT_EQ(lack_of("GPU-cc,GPU-bb"), "");
  EXPECT_EQ(lack_of("1,7"), "this host has no GPU 7 (it has 3)");
  EXPECT_EQ(lack_of("GPU-bb,GPU-dd"), "this host has no GPU GPU-dd (it has 3)");
  EXPECT_EQ(lack_of("MIG-1,MIG-3"), "this host has no MIG instance MIG-3");
  EXPECT_EQ(lack_of("MIG-1,MIG-2"),
            "MIG-1 is a MIG instance, and CUDA shows a process one instance and nothing beside it");
  EXPECT_EQ(lack_of("1,0"),
            "0 is cut into MIG instances, and CUDA shows a process one instance and nothing beside "
            "it");
}

TEST_F(HostCheck, GpusOfAmdAreCountedInTheDriversFiles) {
  const TemporaryVariable path("PATH", home_.path().string());
  const std::string nodes = "sys/class/kfd/kfd/topology/nodes/";
  home_.write(nodes + "0/gpu_id", "0\n");  // the processor
  for (const char* node : {"1", "2", "3"}) home_.write(nodes + node + "/gpu_id", "4095\n");
  const HostGpus gpus = HostGpus::find(home_.path());
  EXPECT_EQ(gpus.count_visible({}, ""), 3);
  EXPECT_EQ(gpus.count_visible({}, "0,2"), 2);
  EXPECT_EQ(gpus.count_visible({"0,2", {}, {}}, ""), 2);
  EXPECT_EQ(gpus.count_visible({{}, {}, "1"}, ""), 1);
  EXPECT_EQ(gpus.count_visible({{}, "0,1", {}}, ""), 2);
  EXPECT_EQ(gpus.lack_of({}, "0,2"), "");
  EXPECT_EQ(gpus.lack_of({{}, "0,1", {}}, "0,2"), "this host has no GPU 2 (it has 2)");
  const TemporaryVariable hip("HIP_VISIBLE_DEVICES", "0,1");
  EXPECT_EQ(gpus.count_visible({}, ""), 2);
  EXPECT_EQ(gpus.count_visible({"2", {}, {}}, ""), 2) << "HIP takes its own variable";
  EXPECT_EQ(gpus.count_visible({}, "2"), 1) << "--gpus sets it, too";
  const TemporaryVariable outer("ROCR_VISIBLE_DEVICES", "2");
  EXPECT_EQ(gpus.count_visible({}, ""), 1);
}

TEST_F(HostCheck, WhatIsMissingIsNamed) {
  const TemporaryVariable path("PATH", home_.path().string());
  const ProgramLacks lacks = find_lacks({true}, Screen::tried, Scripts::none);
  EXPECT_EQ(lacks.programs.front(), "bash");
  EXPECT_EQ(std::ranges::find(lacks.programs, "awk"), lacks.programs.end());
  const auto with_scripts = find_lacks({false}, Screen::found, Scripts::some).programs;
  EXPECT_NE(std::ranges::find(with_scripts, "awk"), with_scripts.end());
  EXPECT_FALSE(lacks.has_terminal);
  EXPECT_TRUE(find_lacks({false}, Screen::found, Scripts::none).has_terminal);
}

TEST_F(HostCheck, AnOldBashAndABrokenScreenAreNamed) {
  add_program("bin/bash", "echo '402 4.2.46(2)-release'\n");
  add_program("bin/screen", "echo first\necho 'cannot make directory' >&2\n");
  const TemporaryVariable path("PATH", home_.path().string() + "/bin:" + std::getenv("PATH"));
  const ProgramLacks lacks = find_lacks({}, Screen::tried, Scripts::none);
  EXPECT_EQ(lacks.old_bash, "4.2.46(2)-release");
  EXPECT_EQ(lacks.screen_fault, "cannot make directory");
  EXPECT_EQ(find_lacks({}, Screen::found, Scripts::none).screen_fault, "");
  add_program("bin/bash", "echo '404 4.4'\n");
  EXPECT_EQ(find_lacks({}, Screen::found, Scripts::none).old_bash, "");
}

TEST_F(HostCheck, VersionsAreFoundInWhatProgramsSay) {
  const TemporaryVariable path("PATH", home_.path().string() + "/bin:" + std::getenv("PATH"));
  const auto version = [this](const std::string& said) {
    add_program("bin/speaker", "echo '" + said + "'\n");
    return version_of("speaker");
  };
  EXPECT_EQ(version("rsync  version 3.2.7  protocol version 31"), "3.2.7");
  EXPECT_EQ(version("Screen version 4.09.00 (GNU) 30-Jan-22"), "4.09.00");
  EXPECT_EQ(version("release 7, build 1."), "");
  EXPECT_EQ(version_of("no_such_program"), "");
}

TEST(HostSurvey, TellsOfThisMachine) {
  const Survey survey = survey_host("/");
  EXPECT_NE(survey.user, "");
  EXPECT_NE(survey.system.find(", "), std::string::npos);
  EXPECT_GT(find_hardware({}).cores, 0);
  EXPECT_GT(find_hardware({}).memory, survey.free_memory);
  EXPECT_GT(survey.free_code, 0);
  EXPECT_NE(survey.bash, "");
}

}  // namespace
}  // namespace dtool::host
