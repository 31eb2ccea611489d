// SPDX-License-Identifier: MIT
// What hosts lack for a run becomes a sentence and a hint; what they have becomes numbers.
#include "cli/ready/check_hosts.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <cstdint>

#include "ssh/wire/check.h"
#include "tests/unit/fake_remote.h"
#include "tests/unit/syntax.h"

namespace dtool::cli {
namespace {

using ssh::Failure;
using tests::answered;
using tests::FakeRemote;

host::CheckReply some_reply() {
  host::CheckReply reply;
  reply.gpus = 2;
  reply.port = 20123;
  reply.address = "10.0.0.1";
  reply.is_environment_ready = true;
  return reply;
}

ssh::HostResult answered_with(const host::CheckReply& reply) {
  return answered(host::to_frame(reply));
}

Needs some_needs() {
  Needs needs;
  needs.run_id = "x_1";
  needs.code_folders = {"~/code", "~/code"};
  return needs;
}

std::vector<Checked> look(FakeRemote& remote, const Needs& needs) {
  Console console;
  return check_hosts(console, remote, needs);
}

/// What one host is found to be that replies this.
Checked judged(const host::CheckReply& reply, const Needs& needs = some_needs()) {
  FakeRemote remote("h1");
  remote.answers[0] = answered_with(reply);
  return look(remote, needs).at(0);
}

host::CheckRequest request_to(const FakeRemote& remote, std::size_t host, std::size_t round = 0) {
  return tests::request_of<host::CheckRequest>(remote.input_of(host, round));
}

TEST(RunCheck, AHostThatLacksNothingIsWell) {
  const Checked checked = judged(some_reply());
  EXPECT_TRUE(checked.result.ok()) << checked.result.error;
  EXPECT_EQ(checked.gpus, 2);
  EXPECT_EQ(checked.port, 20123);
  EXPECT_EQ(checked.address, "10.0.0.1");
  EXPECT_FALSE(checked.logout_kills);
}

TEST(RunCheck, MissingProgramsAreNamedWithTheHostsOwnPackageManager) {
  host::CheckReply reply = some_reply();
  reply.lacks.programs = {"awk", "rsync"};
  const Checked checked = judged(reply);
  EXPECT_EQ(checked.result.failure, Failure::not_started);
  EXPECT_EQ(checked.result.error, "awk, rsync is not there");
  EXPECT_NE(checked.result.hint.find("apt-get install -y mawk rsync' --runs_on {hosts}"),
            std::string::npos)
      << checked.result.hint;
  reply.lacks.package_manager = "dnf";
  EXPECT_NE(judged(reply).result.hint.find("sudo dnf install -y gawk rsync"), std::string::npos);
}

TEST(RunCheck, WordsOfAHostThatDtoolDoesNotKnowStandInNoCommand) {
  host::CheckReply reply = some_reply();
  reply.lacks.programs = {"x; rm -rf ~", "$(id)"};
  reply.lacks.package_manager = "evil";
  const Checked checked = judged(reply);
  EXPECT_EQ(checked.result.failure, Failure::not_started);
  EXPECT_EQ(checked.result.hint, "");
}

TEST(RunCheck, AHomeWhoseFilesCannotBeLockedIsNamed) {
  host::CheckReply reply = some_reply();
  reply.lacks.lock_fault = "/home/ann/.dtool: No locks available";
  EXPECT_EQ(judged(reply).result.error,
            "files cannot be locked in /home/ann/.dtool: No locks available");
}

TEST(RunCheck, ABashThatIsTooOldIsNamed) {
  host::CheckReply reply = some_reply();
  reply.lacks.old_bash = "4.2.46(2)-release";
  const Checked checked = judged(reply);
  EXPECT_EQ(checked.result.error, "bash 4.2.46(2)-release is too old: dtool needs 4.4 or later");
  EXPECT_EQ(checked.lacks.at(0).what, "programs");
}

TEST(RunCheck, AHomeThatCannotBeWrittenIsNoMissingPackage) {
  host::CheckReply reply = some_reply();
  reply.is_home_read_only = true;
  const Checked checked = judged(reply);
  EXPECT_EQ(checked.result.error, "nothing can be written into ~/.dtool");
  EXPECT_EQ(checked.result.hint.find("apt-get"), std::string::npos) << checked.result.hint;
}

TEST(RunCheck, WhatTheEnvironmentsScriptAnswersIsNamed) {
  host::CheckReply reply = some_reply();
  reply.environment =
      "bad_no_file=there is no file /x/activate\nlauncher_lack=no srun\nlauncher_hint=load it\n";
  const Checked checked = judged(reply);
  EXPECT_EQ(checked.result.error, "--env_activate_path: there is no file /x/activate; no srun");
  EXPECT_EQ(checked.lacks.at(1).hint, "load it");
}

TEST(RunCheck, TooFewInodesAreNamed) {
  host::CheckReply reply = some_reply();
  reply.is_home_read_only = true;  // as it seems then
  reply.few_inodes = 0;
  EXPECT_EQ(judged(reply).result.error, "the disk of ~/.dtool has inodes for only 0 more files");
  EXPECT_NE(judged(reply).result.hint.find("df -i"), std::string::npos);
}

TEST(RunCheck, AMissingCodeFolderIsNamed) {
  host::CheckReply reply = some_reply();
  reply.missing_code = "/root/code";
  EXPECT_EQ(judged(reply).result.error,
            "there is no folder /root/code, and --no_sync sends no code");
}

TEST(RunCheck, ATakenPortIsNamed) {
  host::CheckReply reply = some_reply();
  reply.is_port_taken = true;
  Needs needs = some_needs();
  needs.port = 29500;
  const Checked checked = judged(reply, needs);
  EXPECT_EQ(checked.result.error, "something listens on port 29500 already");
  EXPECT_NE(checked.result.hint.find("auto"), std::string::npos);
}

TEST(RunCheck, AHostWithoutAFreePortIsNamed) {
  host::CheckReply reply = some_reply();
  reply.lacks_port = true;
  const Checked checked = judged(reply);
  EXPECT_EQ(checked.lacks.at(0).what, "port");
  EXPECT_EQ(checked.result.error,
            "no port from 20000 to 31999 is free: programs there have them all");
  EXPECT_EQ(checked.result.hint, "end those programs, or name another host first");
}

TEST(RunCheck, SeveralLacksAreAllTold) {
  host::CheckReply reply = some_reply();
  reply.lacks.programs = {"bash"};
  reply.lacks_torchrun = true;
  EXPECT_EQ(judged(reply).result.error,
            "bash is not there; --torchrun: neither torchrun nor a Python with torch is there");
}

TEST(RunCheck, ATrainerThatIsMissingOrOldIsNamed) {
  Needs needs = some_needs();
  needs.trainer = true;
  EXPECT_EQ(judged(some_reply(), needs).result.error, "dtool-trainer is not there");
  const auto with_version = [&](const std::string& version) {
    host::CheckReply reply = some_reply();
    reply.trainer = "/opt/dtool-trainer";
    reply.trainer_version = version;
    reply.is_trainer_fit = version.starts_with("dtool-trainer 9.8.7 ");
    return judged(reply, needs);
  };
  EXPECT_TRUE(with_version("dtool-trainer 9.8.7 (LibTorch)").result.ok());
  EXPECT_EQ(with_version("dtool-trainer 9.8.7 (LibTorch)").trainer, "/opt/dtool-trainer");
  EXPECT_EQ(with_version("dtool-trainer 9.8.79").result.failure, Failure::not_started);
  EXPECT_NE(with_version("error: libtorch.so: not found").result.error.find("libtorch.so"),
            std::string::npos);
}

TEST(RunCheck, AHostWithoutATrainerAwaitsTheBundleThatFitsIt) {
  Needs needs = some_needs();
  needs.trainer = true;
  needs.sends_trainer = true;
  host::CheckReply reply = some_reply();
  reply.processor = "x86_64";
  reply.libc = "glibc 2.36";
  const Checked checked = judged(reply, needs);
  EXPECT_TRUE(checked.result.ok());
  EXPECT_TRUE(checked.awaits_trainer());
}

TEST(RunCheck, ABundleFitsHostsWithItsProcessorAndALaterGlibc) {
  TrainerBundle bundle;
  EXPECT_EQ(misfit(bundle, "riscv64", "glibc 2.36").find("it is of another kind (riscv64)"), 0U);
  utsname own{};
  ::uname(&own);
  bundle.glibc = 36;
  EXPECT_EQ(misfit(bundle, own.machine, "glibc 2.36"), "");
  EXPECT_EQ(misfit(bundle, own.machine, "glibc 2.100"), "");
  EXPECT_NE(misfit(bundle, own.machine, "glibc 2.9").find("needs glibc 2.36"), std::string::npos);
  EXPECT_NE(misfit(bundle, own.machine, "").find("another libc"), std::string::npos);
}

TEST(RunCheck, ABundleThatUsesAPyTorchFitsHostsWithTheSame) {
  TrainerBundle bundle;
  EXPECT_EQ(misfit(bundle, host::PyTorch{}), "") << "it has LibTorch itself";
  bundle.pytorch = TrainerBundle::UsedPyTorch{"2.9.1+cu130", "/x/version.py", ""};
  EXPECT_EQ(misfit(bundle, {"/v/torch", "2.9.1+cu130"}), "");
  const std::string wanted =
      "this machine's trainer is built for GPUs and uses the LibTorch of PyTorch 2.9.1+cu130, and ";
  EXPECT_EQ(misfit(bundle, host::PyTorch{}), wanted + "no Python there has a PyTorch");
  EXPECT_EQ(misfit(bundle, {"/v/torch", "2.9.1"}), wanted + "the one there is 2.9.1 (/v/torch)");
  EXPECT_EQ(misfit(bundle, {"/v/torch", ""}),
            wanted + "the one there is of an unknown version (/v/torch)");
  EXPECT_EQ(misfit(bundle, {"/v:w/torch", "2.9.1+cu130"}),
            wanted + "the loader cannot search its folder there: /v:w/torch");
  EXPECT_EQ(misfit(bundle, host::PyTorch{"/v/torch", "2.9.1+cu130"}, "nobody can look"),
            wanted + "nobody can look");
}

TEST(RunCheck, APyTorchThatIsFoundBesideTheContainerIsNotTheContainers) {
  Needs needs = some_needs();
  needs.trainer = true;
  host::CheckReply reply = some_reply();
  reply.trainer = "/root/.dtool/trainers/a/dtool-trainer";
  reply.is_trainer_fit = true;
  reply.environment = "unseen_no_engine=ch-run\n";
  EXPECT_TRUE(judged(reply, needs).result.ok()) << "it has LibTorch itself";
  reply.pytorch = {"/v/torch", "2.9.1"};
  const Checked checked = judged(reply, needs);
  EXPECT_EQ(checked.result.error,
            "/root/.dtool/trainers/a/dtool-trainer uses a PyTorch, and this host cannot look into "
            "the container: ch-run is not there");
  EXPECT_EQ(checked.pytorch, "");
}

TEST(RunCheck, TheFolderOfAUsedPyTorchIsTakenOnlyIfTheLoaderCanSearchIt) {
  Needs needs = some_needs();
  needs.trainer = true;
  host::CheckReply reply = some_reply();
  reply.trainer = "/root/.dtool/trainers/a/dtool-trainer";
  reply.is_trainer_fit = true;
  EXPECT_EQ(judged(reply, needs).pytorch, "");
  reply.pytorch = {"/v/torch", "2.9.1"};
  EXPECT_EQ(judged(reply, needs).pytorch, "/v/torch");
  reply.pytorch.folder = "/v/$(id)/torch";
  EXPECT_EQ(judged(reply, needs).result.error,
            "its answer cannot be read: its PyTorch's folder is not one");
  EXPECT_EQ(judged(reply, needs).pytorch, "");
}

TEST(RunCheck, ATrainerThatLacksLibrariesIsReplacedByTheBundle) {
  Needs needs = some_needs();
  needs.trainer = true;
  host::CheckReply reply = some_reply();
  reply.trainer = "/opt/dtool-trainer";
  reply.trainer_version = "dtool-trainer 9.8.7 (LibTorch)";
  reply.missing_libraries = "libc10.so";
  EXPECT_EQ(judged(reply, needs).result.error, "/opt/dtool-trainer lacks libc10.so");
  needs.sends_trainer = true;
  EXPECT_TRUE(judged(reply, needs).awaits_trainer());
}

TEST(RunCheck, AnEnvironmentThatEndsItsShellIsNoMissingTrainer) {
  Needs needs = some_needs();
  needs.trainer = true;
  host::CheckReply reply = some_reply();
  reply.is_environment_ready = false;
  reply.environment = "bad_activate=/x ended the shell with exit code 3\n";
  EXPECT_EQ(judged(reply, needs).result.error,
            "--env_activate_path: /x ended the shell with exit code 3");
}

TEST(RunCheck, AHostThatEndsWhatUsersLeaveRunningIsKnown) {
  host::CheckReply reply = some_reply();
  reply.logout_kills = true;
  EXPECT_TRUE(judged(reply).logout_kills);
}

TEST(RunCheck, AHostThatDidNotAnswerKeepsItsFailure) {
  FakeRemote remote("h[1-2]");
  remote.answers[0] = tests::failed(Failure::unreachable, "refused", "hint");
  remote.answers[1] = answered_with(some_reply());
  const auto checked = look(remote, some_needs());
  EXPECT_EQ(checked[0].result.failure, Failure::unreachable);
  EXPECT_EQ(checked[0].result.error, "refused");
  EXPECT_TRUE(checked[1].result.ok());
}

TEST(RunCheck, AnAnswerThatCannotBeReadIsAFailure) {
  FakeRemote remote("h1");
  const std::string frame = host::to_frame(some_reply());
  remote.answers[0] = answered(frame.substr(0, frame.size() - 1), 2, "killed");
  EXPECT_EQ(look(remote, some_needs())[0].result.error,
            "the host cannot be looked at: the answer is not whole (exit code 2): killed");
  remote.answers[0] = answered(host::to_frame(host::Fault{"no process can be made"}));
  EXPECT_EQ(look(remote, some_needs())[0].result.error,
            "the host cannot be looked at: no process can be made");
}

TEST(RunCheck, NumbersThatCannotBeAreAFailureOfThatHostAlone) {
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{70'000}, INT64_MAX}) {
    FakeRemote remote("h[1-2]");
    host::CheckReply reply = some_reply();
    reply.port = bad;
    remote.answers[0] = answered_with(reply);
    remote.answers[1] = answered_with(some_reply());
    const auto checked = look(remote, some_needs());
    EXPECT_EQ(checked[0].result.error,
              "its answer port=" + std::to_string(bad) + " is not from 0 to 65535");
    EXPECT_TRUE(checked[1].result.ok());
  }
}

TEST(RunCheck, OnlyTheFirstMachineIsAskedForAPort) {
  FakeRemote remote("h[1-2]");
  Needs needs = some_needs();
  look(remote, needs);
  EXPECT_EQ(request_to(remote, 0).port, 0);
  EXPECT_EQ(request_to(remote, 1).port, std::nullopt);
  EXPECT_FALSE(request_to(remote, 0).is_supervised);
  needs.port = 29500;
  needs.is_supervised = true;
  look(remote, needs);
  EXPECT_EQ(request_to(remote, 0, 1).port, 29500);
  EXPECT_TRUE(request_to(remote, 0, 1).is_supervised);
  EXPECT_FALSE(request_to(remote, 1, 1).is_supervised);
}

TEST(RunCheck, HostsWithoutAnEnvironmentAreAskedNothingInBash) {
  FakeRemote remote("h1");
  look(remote, some_needs());
  EXPECT_EQ(request_to(remote, 0).environment.text, "");
}

TEST(RunCheck, BashReadsTheScriptWhateverThePathsHold) {
  FakeRemote remote("h1");
  Needs needs = some_needs();
  needs.trainer = true;
  needs.code_folders = {"~/it's a $(place)"};
  needs.environment.activate = "~/-x\n'";
  look(remote, needs);
  EXPECT_EQ(tests::syntax_fault(request_to(remote, 0).environment.text), "");
}

/// A push of one step, which writes down which hosts came to it.
struct OneStep : tree_sync::Pushing {
  ssh::Task first_task(std::size_t host) const override { return {host, ssh::Command{"send"}}; }
  std::vector<ssh::HostResult> finish(ssh::Remote&) override { return {}; }
  void on_result(std::size_t host, const ssh::HostResult&) override { came.push_back(host); }

  std::vector<std::size_t> came;
};

TEST(RunCheck, HostsThatLackNothingGoOnToThePushAndTheOthersDoNot) {
  FakeRemote remote("h[1-4]");
  host::CheckReply lacking = some_reply();
  lacking.lacks.programs = {"bash"};
  remote.answers[0] = answered_with(some_reply());
  remote.answers[1] = answered_with(lacking);
  remote.answers[2] = tests::failed(Failure::unreachable, "no route");
  remote.answers[3] = answered_with(some_reply());
  Needs needs = some_needs();
  needs.code_folders.assign(4, "~/code");
  OneStep push;
  Console console;
  const std::vector<Checked> checked = check_hosts(console, remote, needs, &push);
  EXPECT_EQ(push.came, (std::vector<std::size_t>{0, 3}));
  EXPECT_TRUE(checked[0].result.ok());
  EXPECT_EQ(checked[1].result.error, "bash is not there");
  EXPECT_EQ(checked[2].result.error, "no route");
  EXPECT_EQ(checked[3].gpus, 2) << "what it was found to be, not what the push answered";
}

TEST(RunCheck, AnExperimentWithAFaultIsSentNowhereByMachine0) {
  FakeRemote remote("h1");
  host::CheckReply reply = some_reply();
  reply.experiment_fault = "oh";
  remote.answers[0] = answered_with(reply);
  OneStep push;
  Console console;
  check_hosts(console, remote, some_needs(), &push);
  EXPECT_TRUE(push.came.empty());
}

TEST(RunCheck, TheFaultOfAnExperimentIsTakenOutOfTheTrainersWordsHoweverLongTheyAre) {
  const auto fault_of = [](const std::string& said) {
    host::CheckReply reply = some_reply();
    reply.experiment_fault = said;
    return judged(reply).experiment_fault;
  };
  EXPECT_EQ(fault_of("dtool-trainer: experiment:3:1: no stage hint: name one"),
            "no stage\nhint: name one");
  EXPECT_EQ(fault_of("dtool-trainer: experiment: what"), "what");
  EXPECT_EQ(fault_of("dtool-trainer: no file"), "no file");
  EXPECT_EQ(fault_of("experiment:3:1: x"), "experiment:3:1: x");
  const std::string digits(200'000, '7');
  EXPECT_EQ(fault_of("dtool-trainer: experiment:" + digits), "experiment:" + digits);
  EXPECT_EQ(fault_of("dtool-trainer: experiment:" + digits + " oh"), "oh");
}

TEST(RunCheck, AfterAnInterruptNobodyGoesOnToThePush) {
  FakeRemote remote("h[1-2]");
  remote.answers[0] = answered_with(some_reply());
  remote.interrupt_before = 1;
  OneStep push;
  Console console;
  const std::vector<Checked> checked = check_hosts(console, remote, some_needs(), &push);
  EXPECT_EQ(push.came, std::vector<std::size_t>{0});
  EXPECT_EQ(checked[1].result.failure, Failure::not_started);
}

}  // namespace
}  // namespace dtool::cli
