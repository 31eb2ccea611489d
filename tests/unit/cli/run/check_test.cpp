// What hosts lack for a run becomes a sentence and a hint; what they have becomes numbers.
#include "cli/run/check.h"

#include <gtest/gtest.h>

#include "tests/unit/fake_remote.h"
#include "tests/unit/syntax.h"

namespace dtool::cli {
namespace {

using ssh::Failure;
using tests::answered;
using tests::FakeRemote;

constexpr const char* kWell =
    "dtool-answer home=/root\ndtool-answer gpus=2\ndtool-answer port=20123\n"
    "dtool-answer address=10.0.0.1\n";
constexpr const char* kEnd = "dtool-answer checked=yes\n";

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

/// What one host is found to be that gives these answers.
Checked judged(const std::string& answers, const Needs& needs = some_needs()) {
  FakeRemote remote("h1");
  remote.answers[0] = answered(kWell + answers + kEnd);
  return look(remote, needs).at(0);
}

TEST(RunCheck, AHostThatLacksNothingIsWell) {
  const Checked checked = judged("");
  EXPECT_TRUE(checked.result.ok()) << checked.result.error;
  EXPECT_EQ(checked.gpus, 2);
  EXPECT_EQ(checked.port, 20123);
  EXPECT_EQ(checked.address, "10.0.0.1");
  EXPECT_FALSE(checked.logout_kills);
}

TEST(RunCheck, MissingProgramsAreNamedWithTheirPackages) {
  const Checked checked = judged("dtool-answer lack=screen\ndtool-answer lack=flock\n");
  EXPECT_EQ(checked.result.failure, Failure::not_started);
  EXPECT_EQ(checked.result.error, "screen, flock is not there");
  EXPECT_NE(checked.result.hint.find("apt-get install -y screen util-linux' --runs_on {hosts}"),
            std::string::npos)
      << checked.result.hint;
}

TEST(RunCheck, ProgramsThatCannotDoWhatIsAskedAreNamedWithTheHostsOwnPackageManager) {
  const Checked checked = judged(
      "dtool-answer unfit=tail --pid\ndtool-answer unfit=find -printf\n"
      "dtool-answer package_manager=dnf\n");
  EXPECT_EQ(checked.result.error, "tail does not know --pid, find does not know -printf");
  EXPECT_NE(checked.result.hint.find("sudo dnf install -y coreutils findutils' --runs_on {hosts}"),
            std::string::npos)
      << checked.result.hint;
}

TEST(RunCheck, WordsOfAHostThatDtoolDoesNotKnowStandInNoCommand) {
  const Checked checked = judged(
      "dtool-answer lack=x; rm -rf ~\ndtool-answer unfit=$(id) -z\n"
      "dtool-answer package_manager=evil\n");
  EXPECT_EQ(checked.result.failure, Failure::not_started);
  EXPECT_EQ(checked.result.hint, "");
}

TEST(RunCheck, AHomeWhoseFilesCannotBeLockedIsNamed) {
  EXPECT_EQ(judged("dtool-answer no_locks=/home/ann/.dtool: No locks available\n").result.error,
            "files cannot be locked in /home/ann/.dtool: No locks available");
}

TEST(RunCheck, ABashThatIsTooOldIsNamed) {
  FakeRemote remote("h1");
  const std::string said = "bash 4.2.46(2)-release is too old: dtool needs 4.4 or later";
  remote.answers[0] = answered("", 69, said + "\n");
  const Checked checked = look(remote, some_needs()).at(0);
  EXPECT_EQ(checked.result.error, said);
  EXPECT_EQ(checked.lacks.at(0).what, "programs");
}

TEST(RunCheck, AHomeThatCannotBeWrittenIsNoMissingPackage) {
  const Checked checked = judged("dtool-answer home_read_only=yes\n");
  EXPECT_EQ(checked.result.error, "nothing can be written into ~/.dtool");
  EXPECT_EQ(checked.result.hint.find("apt-get"), std::string::npos) << checked.result.hint;
}

TEST(RunCheck, AMissingActivateFileIsNamed) {
  EXPECT_EQ(judged("dtool-answer no_activate=/x/activate\n").result.error,
            "--env_activate_path: there is no file /x/activate");
}

TEST(RunCheck, AMissingCodeFolderIsNamed) {
  EXPECT_EQ(judged("dtool-answer no_code=/root/code\n").result.error,
            "there is no folder /root/code, and --no_sync sends none");
}

TEST(RunCheck, ATakenPortIsNamed) {
  const Checked checked = judged("dtool-answer port_taken=29500\n");
  EXPECT_EQ(checked.result.error, "something listens on port 29500 already");
  EXPECT_NE(checked.result.hint.find("auto"), std::string::npos);
}

TEST(RunCheck, SeveralLacksAreAllTold) {
  EXPECT_EQ(judged("dtool-answer lack=screen\ndtool-answer port_taken=1\n").result.error,
            "screen is not there; something listens on port 1 already");
}

TEST(RunCheck, ATrainerThatIsMissingOrOldIsNamed) {
  Needs needs = some_needs();
  needs.trainer = true;
  EXPECT_EQ(judged("", needs).result.error, "dtool-trainer is not there");
  const std::string trainer = "dtool-answer trainer=/opt/dtool-trainer\n";
  const auto with_version = [&](const std::string& version) {
    return judged(trainer + "dtool-answer trainer_version=" + version + "\n", needs);
  };
  EXPECT_TRUE(with_version("dtool-trainer " DTOOL_VERSION " (LibTorch)").result.ok());
  EXPECT_TRUE(with_version("dtool-trainer " DTOOL_VERSION).result.ok());
  EXPECT_EQ(with_version("dtool-trainer " DTOOL_VERSION).trainer, "/opt/dtool-trainer");
  EXPECT_EQ(with_version("dtool-trainer " DTOOL_VERSION "9").result.failure, Failure::not_started);
  EXPECT_NE(with_version("error: libtorch.so: not found").result.error.find("libtorch.so"),
            std::string::npos);
}

TEST(RunCheck, AHostThatEndsWhatUsersLeaveRunningIsKnown) {
  EXPECT_TRUE(judged("dtool-answer logout_kills=yes\n").logout_kills);
}

TEST(RunCheck, AHostThatDidNotAnswerKeepsItsFailure) {
  FakeRemote remote("h[1-2]");
  remote.answers[0] = tests::failed(Failure::unreachable, "refused", "hint");
  remote.answers[1] = answered(std::string(kWell) + kEnd);
  const auto checked = look(remote, some_needs());
  EXPECT_EQ(checked[0].result.failure, Failure::unreachable);
  EXPECT_EQ(checked[0].result.error, "refused");
  EXPECT_TRUE(checked[1].result.ok());
}

TEST(RunCheck, AnAnswerThatWasCutShortIsAFailure) {
  FakeRemote remote("h1");
  remote.answers[0] = answered(kWell, 2, "bash: eval: line 7: syntax error");
  EXPECT_EQ(look(remote, some_needs())[0].result.error,
            "the host cannot be looked at: bash: eval: line 7: syntax error");
  remote.answers[0] = answered("This account is currently not available.\n", 1, "");
  EXPECT_EQ(look(remote, some_needs())[0].result.error,
            "the host cannot be looked at: This account is currently not available.");
  remote.answers[0] = answered("", 9, "");
  EXPECT_EQ(look(remote, some_needs())[0].result.error,
            "the host cannot be looked at: exit code 9");
  remote.answers[0] = answered("", 127, "sh: exec: bash: not found");
  EXPECT_EQ(look(remote, some_needs())[0].result.error, "bash is not there");
}

TEST(RunCheck, AnswersThatAreNoNumbersAreAFailureOfThatHostAlone) {
  for (const std::string bad : {"gpus=many", "gpus=", "gpus=99999999999", "port=x", "port=70000"}) {
    FakeRemote remote("h[1-2]");
    remote.answers[0] = answered("dtool-answer " + bad + "\n" + kEnd);
    remote.answers[1] = answered(std::string(kWell) + kEnd);
    const auto checked = look(remote, some_needs());
    EXPECT_FALSE(checked[0].result.ok()) << bad;
    EXPECT_NE(checked[0].result.error.find(bad.substr(0, 4)), std::string::npos)
        << checked[0].result.error;
    EXPECT_TRUE(checked[1].result.ok());
  }
}

TEST(RunCheck, OnlyTheFirstMachineIsAskedForAPort) {
  FakeRemote remote("h[1-2]");
  Needs needs = some_needs();
  look(remote, needs);
  EXPECT_NE(remote.input_of(0).find("\nport=auto\n"), std::string::npos);
  EXPECT_NE(remote.input_of(1).find("\nport=''\n"), std::string::npos);
  needs.port = 29500;
  look(remote, needs);
  EXPECT_NE(remote.input_of(0, 1).find("\nport=29500\n"), std::string::npos);
}

TEST(RunCheck, BashReadsTheScriptWhateverThePathsHold) {
  FakeRemote remote("h1");
  Needs needs = some_needs();
  needs.code_must_exist = true;
  needs.trainer = true;
  needs.code_folders = {"~/it's a $(place)"};
  needs.environment.activate = "~/-x\n'";
  look(remote, needs);
  EXPECT_EQ(tests::syntax_fault(remote.input_of(0)), "");
}

TEST(RunCheck, TheScriptAnswersHere) {
  const tests::TemporaryFolder home;
  const tests::TemporaryVariable variable("HOME", home.path().string());
  FakeRemote remote("h1");
  Needs needs = some_needs();
  needs.code_must_exist = true;
  needs.environment.activate = "~/no such file";
  look(remote, needs);
  remote.answers[0] = answered(tests::run_bash(remote.input_of(0)));
  const Checked checked = look(remote, needs).at(0);
  EXPECT_NE(checked.result.error.find("there is no file " + home.path().string() + "/no such file"),
            std::string::npos)
      << checked.result.error;
  EXPECT_NE(checked.result.error.find("there is no folder " + home.path().string() + "/code"),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::is_directory(home.path() / ".dtool/runs/x_1"));
}

TEST(RunCheck, AFolderOfRunsThatCannotBeOneIsTold) {
  FakeRemote remote("h1");
  Needs needs = some_needs();
  needs.run_id.clear();  // as `dtool check`, which makes no folder
  needs.code_folders = {"~"};
  look(remote, needs);
  const auto is_told = [&remote](const std::filesystem::path& home) {
    const tests::TemporaryVariable variable("HOME", home.string());
    return tests::run_bash(remote.input_of(0)).find("home_read_only") != std::string::npos;
  };
  const tests::TemporaryFolder well;
  EXPECT_FALSE(is_told(well.path()));
  std::filesystem::create_directories(well.path() / ".dtool/runs");
  EXPECT_FALSE(is_told(well.path()));
  const tests::TemporaryFolder taken;
  taken.write(".dtool", "");
  EXPECT_TRUE(is_told(taken.path()));
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
  const std::string well = std::string(kWell) + kEnd;
  remote.answers[0] = answered(well);
  remote.answers[1] = answered("dtool-answer lack=screen\n" + well);
  remote.answers[2] = tests::failed(Failure::unreachable, "no route");
  remote.answers[3] = answered(well);
  Needs needs = some_needs();
  needs.code_folders.assign(4, "~/code");
  OneStep push;
  Console console;
  const std::vector<Checked> checked = check_hosts(console, remote, needs, &push);
  EXPECT_EQ(push.came, (std::vector<std::size_t>{0, 3}));
  EXPECT_TRUE(checked[0].result.ok());
  EXPECT_EQ(checked[1].result.error, "screen is not there");
  EXPECT_EQ(checked[2].result.error, "no route");
  EXPECT_EQ(checked[3].gpus, 2) << "what it was found to be, not what the push answered";
}

TEST(RunCheck, AnExperimentWithAFaultIsSentNowhereByMachine0) {
  FakeRemote remote("h1");
  remote.answers[0] = answered(std::string(kWell) + "dtool-answer bad_experiment=oh\n" + kEnd);
  OneStep push;
  Console console;
  check_hosts(console, remote, some_needs(), &push);
  EXPECT_TRUE(push.came.empty());
}

TEST(RunCheck, TheFaultOfAnExperimentIsTakenOutOfTheTrainersWordsHoweverLongTheyAre) {
  const auto fault_of = [](const std::string& said) {
    return judged("dtool-answer bad_experiment=" + said + "\n").experiment_fault;
  };
  EXPECT_EQ(fault_of("dtool-trainer: experiment:3:1: no stage hint: name one"),
            "no stage\nhint: name one");
  EXPECT_EQ(fault_of("dtool-trainer: experiment: what"), "experiment: what");
  EXPECT_EQ(fault_of("dtool-trainer: no file"), "no file");
  EXPECT_EQ(fault_of("experiment:3:1: x"), "experiment:3:1: x");
  const std::string digits(200'000, '7');
  EXPECT_EQ(fault_of("dtool-trainer: experiment:" + digits), "experiment:" + digits);
  EXPECT_EQ(fault_of("dtool-trainer: experiment:" + digits + " oh"), "oh");
}

TEST(RunCheck, AfterAnInterruptNobodyGoesOnToThePush) {
  FakeRemote remote("h[1-2]");
  remote.answers[0] = answered(std::string(kWell) + kEnd);
  remote.interrupt_before = 1;
  OneStep push;
  Console console;
  const std::vector<Checked> checked = check_hosts(console, remote, some_needs(), &push);
  EXPECT_EQ(push.came, std::vector<std::size_t>{0});
  EXPECT_EQ(checked[1].result.failure, Failure::not_started);
}

}  // namespace
}  // namespace dtool::cli
