// SPDX-License-Identifier: MIT
// What a run's processes find on a host: which engine an image is for, the words that enter it, and
// how environments are activated.
#include "cli/plan/environment.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/action.h"
#include "ssh/quote.h"
#include "tests/unit/syntax.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::cli {
namespace {

using tests::run_bash;
using tests::TemporaryFolder;

Environment with_image(const std::string& image, const std::vector<std::string>& binds = {},
                       const std::string& engine = "") {
  EnvironmentFlags flags;
  flags.container = image;
  flags.binds = binds;
  flags.container_engine = engine;
  return make_environment(flags, Settings());
}

template <typename Call>
std::string usage_fault(Call&& call) {
  try {
    call();
  } catch (const UsageError& fault) {
    return fault.what();
  }
  return "";
}

std::string engine_of(const std::string& image) {
  return name_of(with_image(image).container->runtime);
}

/// A host's programs, each of which does nothing.
class Programs {
 public:
  explicit Programs(const std::vector<std::string>& names) {
    for (const std::string& name : names)
      std::filesystem::permissions(folder_.write(name, "#!/bin/sh\nexit 1\n"),
                                   std::filesystem::perms::owner_all);
  }
  std::string path() const { return folder_.path().string(); }

 private:
  TemporaryFolder folder_;
};

constexpr const char* kFault = "fault() { echo \"$1: $2\"; exit 1; }\n";

/// The words before a program, one a line, on a host that has these programs alone.
std::string words_of(const Environment& environment, const Programs& programs,
                     const std::string& before = "") {
  return run_bash(kFault + before + environment_script(environment, {"A", "B"}) +
                  "PATH=" + programs.path() +
                  ":$PATH A='1 $x' B=2\n"
                  "find_engine\n"
                  "enter_container /code /code /code/out/run /state /tmp/x\n"
                  "printf '%s\\n' \"${inside[@]#" +
                  programs.path() + "/}\"\n");
}

TEST(Environment, TheEngineIsKnownByTheImage) {
  EXPECT_EQ(engine_of("~/torch.sif"), "apptainer");
  EXPECT_EQ(engine_of("torch.sif"), "apptainer");
  EXPECT_EQ(engine_of("/images/torch"), "charliecloud");
  EXPECT_EQ(engine_of("./torch"), "charliecloud");
  EXPECT_EQ(engine_of("torch.sqfs"), "charliecloud");
  EXPECT_EQ(engine_of("pytorch/pytorch:2.4.0"), "podman");
  EXPECT_EQ(with_image("/a/folder", {}, "apptainer").container->runtime,
            ContainerRuntime::apptainer);
}

TEST(Environment, WhatCannotBeIsNamed) {
  const auto fault = [](const std::string& image, const std::vector<std::string>& binds) {
    return usage_fault([&] { with_image(image, binds); });
  };
  EXPECT_NE(fault("docker://a/b", {}).find("'apptainer pull image.sif docker://a/b'"),
            std::string::npos);
  EXPECT_NE(fault("a.sif", {"data"}).find("--bind data: 'data' does not say where it begins"),
            std::string::npos);
  EXPECT_NE(fault("a.sif", {"/data:"}).find("'' does not say"), std::string::npos);
  EXPECT_NE(fault("a.sif", {"/a:/b:ro"}).find("more than one colon"), std::string::npos);
  EXPECT_NE(fault("", {"/a"}).find("a container alone"), std::string::npos);
}

TEST(Environment, FlagsWinOverSettingsAndBindsAreAdded) {
  Settings settings;
  settings.modules = "gcc cuda/12";
  settings.container = "a.sif";
  settings.container_engine = "podman";
  settings.bind = {"/data"};
  EnvironmentFlags flags;
  EXPECT_EQ(to_json(make_environment(flags, settings)).dump(),
            R"({"bind":["/data:/data"],"container":"a.sif","container_engine":"podman",)"
            R"("modules":["gcc","cuda/12"]})");
  flags.modules = " python/3.11 ";
  flags.container = "b";
  flags.container_engine = "charliecloud";
  flags.binds = {"~/x:/y"};
  EXPECT_EQ(to_json(make_environment(flags, settings)).dump(),
            R"({"bind":["/data:/data","~/x:/y"],"container":"b","container_engine":)"
            R"("charliecloud","modules":["python/3.11"]})");
}

TEST(Environment, WhatIsInTheCurrentFolderComesWithTheCode) {
  // The tests' folder is the build's.
  const std::filesystem::path folder = std::filesystem::current_path();
  const std::string here = "here_" + std::to_string(::getpid());
  std::filesystem::create_directory(folder / here);
  Environment environment = with_image(here);
  environment.container->runtime = ContainerRuntime::charliecloud;
  for (const std::string& path : {here, "./" + here, "~/code/" + here}) {
    environment.activate = path;
    EXPECT_TRUE(has_sent(environment, "~/code"));
    EXPECT_EQ(without_sent(environment, "~/code").activate, "") << path;
    EXPECT_FALSE(without_sent(environment, "~/code").container);
  }
  environment.container->runtime = ContainerRuntime::podman;
  for (const std::string& path : {here + "_not", "~/" + here, "~/other/" + here, "/" + here}) {
    environment.activate = path;
    EXPECT_FALSE(has_sent(environment, "~/code")) << path;
    EXPECT_EQ(without_sent(environment, "~/code").activate, path);
    EXPECT_TRUE(without_sent(environment, "~/code").container);
  }
  std::filesystem::remove(folder / here);
}

TEST(Environment, TorchrunWantsAScript) {
  EnvironmentFlags flags;
  flags.torchrun = true;
  const Environment environment = make_environment(flags, Settings());
  const auto fault = [&environment](const std::vector<std::string>& program) {
    return usage_fault([&] { check_torchrun(environment, program); });
  };
  EXPECT_NE(fault({}).find("wants a script"), std::string::npos);
  EXPECT_NE(fault({"/usr/bin/python3.11", "x.py"}).find("leave /usr/bin/python3.11 away"),
            std::string::npos);
  EXPECT_EQ(fault({"python_bench.py"}), "");
  EXPECT_EQ(fault({"-m", "package"}), "");
}

TEST(Container, ApptainerIsEnteredAsByHand) {
  const Environment environment = with_image("/images/torch.sif", {"/data", "/a:/b"});
  EXPECT_EQ(
      words_of(environment, Programs({"apptainer", "singularity"}), "nvidia_driver=/dev/null\n"),
      "apptainer\nexec\n--pwd\n/code\n--nv\n-B\n/data:/data\n-B\n/a:/b\n-B\n/code:/code\n-B\n"
      "/state:/state\n/images/torch.sif\n");
}

TEST(Container, SingularityDoesWhereApptainerIsNotThere) {
  const std::string words =
      words_of(with_image("/torch.sif"), Programs({"singularity"}), "nvidia_driver=/none\n");
  EXPECT_EQ(words,
            "singularity\nexec\n--pwd\n/code\n-B\n/code:/code\n-B\n/state:/state\n/torch.sif\n");
}

TEST(Container, ApptainerLetsTheUsersVariablesWinOverTheImages) {
  const Programs programs({"apptainer"});
  EXPECT_EQ(
      run_bash(kFault + environment_script(with_image("/torch.sif"), {"A"}) +
               "PATH=" + programs.path() +
               ":$PATH A='1 $x'\nfind_engine\nenter_container /code\n"
               "env | grep -E '^(APPTAINER|SINGULARITY)' | sort\n"),
      "APPTAINERENV_A=1 $x\nAPPTAINER_NO_EVAL=1\nSINGULARITYENV_A=1 $x\nSINGULARITY_NO_EVAL=1\n");
}

TEST(Container, PodmanSharesWithTheHostWhatRanksAndKillNeed) {
  EXPECT_EQ(
      words_of(with_image("pytorch/pytorch:2", {"/data"}), Programs({"podman"}),
               "nvidia_driver=/dev/null\n"),
      "podman\nrun\n--rm\n--pull=never\n--entrypoint=\n--network=host\n--pid=host\n--ipc=host\n"
      "--ulimit=host\n--security-opt=label=disable\n--env-host\n--workdir=/code\n-v\n/tmp:/tmp\n"
      "--env=A\n--env=B\n--device=nvidia.com/gpu=all\n-v\n/data:/data\n-v\n/code:/code\n-v\n"
      "/state:/state\npytorch/pytorch:2\n");
}

TEST(Container, CharliecloudsWordsEndBeforeTheProgram) {
  EXPECT_EQ(words_of(with_image("/image.sqfs", {"/a b:/c"}), Programs({"ch-run"})),
            "ch-run\n--cd=/code\n--bind=/a "
            "b:/c\n--bind=/code:/code\n--bind=/state:/state\n/image.sqfs\n--\n");
}

TEST(Container, AnEngineThatIsMissingIsAFault) {
  EXPECT_EQ(
      run_bash(kFault + environment_script(with_image("/a.sif"), {}) + "PATH=/none\nfind_engine\n"),
      "no_engine: apptainer\nexit code 1\n");
}

TEST(Container, ANameThatAnEngineWouldSplitIsAFault) {
  EXPECT_EQ(words_of(with_image("/a.sif", {"/a,b"}), Programs({"apptainer"})),
            "container: apptainer cannot bind /a,b: it splits the name\nexit code 1\n");
}

/// What the environment at `path` leaves behind, or its fault.
std::string activated(const std::string& path, const std::string& then) {
  return run_bash(kFault + environment_script({{}, path, std::nullopt, Torchrun::no}, {}) +
                  "cd / && ready_software / /\n" + then);
}

TEST(Activation, AFolderOfAVirtualEnvironmentIsActivated) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "bin");
  folder.write("bin/activate", "declare -x COLOUR=red\n");
  EXPECT_EQ(activated(folder.path().string(), "echo $COLOUR\n"), "red\n");
}

TEST(Activation, AFolderOfCondasIsActivatedWithoutConda) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "conda-meta");
  std::filesystem::create_directories(folder.path() / "etc/conda/activate.d");
  folder.write("etc/conda/activate.d/gcc.sh", "export COMPILER_OF=$CONDA_PREFIX\n");
  const std::string path = folder.path().string();
  EXPECT_EQ(activated(path, "echo \"${PATH%%:*} $COMPILER_OF\"\n"), path + "/bin " + path + "\n");
}

TEST(Activation, WhatAScriptDoesWrongIsTold) {
  const TemporaryFolder folder;
  const auto with = [&folder](const std::string& text) {
    const std::string path = folder.write("activate", text).string();
    std::string said = activated(path, "echo went on\n");
    while (said.find(path) != said.npos) said.replace(said.find(path), path.size(), "IT");
    return said;
  };
  EXPECT_EQ(with("echo no such library >&2\nreturn 3\n"),
            "no such library\nactivate: IT failed: no such library\nexit code 1\n");
  EXPECT_EQ(with("exit 4\n"), "activate: IT ended the shell with exit code 4\nexit code 1\n");
  EXPECT_EQ(with("set -u\necho $NOT_SET_ANYWHERE\n"),
            "activate: IT ended the shell with exit code 1: IT: line 2: NOT_SET_ANYWHERE: unbound "
            "variable\nexit code 1\n");
  EXPECT_EQ(with("exec true\n"), "activate: IT ended the shell with exit code 0\nexit code 1\n");
  EXPECT_EQ(with("set -n\n"), "activate: IT ended the shell with exit code 0\nexit code 1\n");
}

/// dtool goes on where it was, with what was its own.
TEST(Activation, OnlyWhatProcessesInheritComesBackFromAScript) {
  const TemporaryFolder folder;
  const std::string path =
      folder
          .write("activate",
                 "cd /tmp; set -eu; trap 'echo bye' EXIT; trap '' TERM; exec > /dev/null 5>&1\n"
                 "cd() { :; }; exec() { :; }; fault() { :; }; IFS=:\n"
                 "readonly code=/other; program=(other); export port=8080 COLOUR=$'red\\n'\n"
                 "unset GONE; umask 027; ulimit -Sn 123; say() { echo said; }; export -f say\n")
          .string();
  EXPECT_EQ(run_bash(std::string("export GONE=no; code=/mine program=(mine words) port=29500\n") +
                     kFault + environment_script({{}, path, std::nullopt, Torchrun::no}, {}) +
                     "cd / && ready_software / / && cd .\n"
                     "echo \"$PWD $code ${program[*]} $port $(umask) $(ulimit -Sn) $(say)\"\n"
                     "echo \"${GONE-none} [$-] $(trap -p EXIT TERM) [$IFS]\"\n"
                     "become it sh -c 'echo \"$0 $port [$COLOUR]\"'\n"),
            "/ /mine mine words 29500 0027 123 said\nnone [hB]  [ \t\n]\nit 8080 [red\n]\n");
}

TEST(Activation, AProgramSeesItsVariablesWhateverDtoolCallsItsOwn) {
  EXPECT_EQ(
      run_bash(std::string("export state=theirs modules=theirs\n") + kFault + "exec bash -c " +
               ssh::quote(environment_script({}, {}) +
                          "state=mine later[image]=given\n"
                          "become sh sh -c 'echo \"$state $modules $image ${activate-}\"'\n")),
      "theirs theirs given \n");
}

/// A virtual environment of this machine's, in a folder that goes to a host.
TEST(Activation, AVirtualEnvironmentThatLeadsElsewhereIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.path().string() + "/venv";
  folder.write("venv/pyvenv.cfg", "");
  std::filesystem::create_directories(folder.path() / "venv/bin");
  std::filesystem::create_symlink("/bin/sh", path + "/bin/python3");
  const auto made_for = [&](const std::string& place) {
    folder.write("venv/bin/activate", "VIRTUAL_ENV=" + place + " PATH=" + place +
                                          "/bin:/usr/bin:/bin; export VIRTUAL_ENV\n");
    std::string said = activated(path, "echo went on\n");
    while (said.find(path) != said.npos) said.replace(said.find(path), path.size(), "IT");
    return said.substr(0, said.find(", and python3 is"));
  };
  EXPECT_EQ(made_for(path), "went on\n");
  EXPECT_EQ(made_for("/home/ann/venv"),
            "environment: IT is of no use here: it was made for /home/ann/venv");
  std::filesystem::remove(path + "/bin/python3");
  std::filesystem::create_symlink("/opt/python3.13", path + "/bin/python3");
  EXPECT_EQ(made_for(path),
            "environment: IT is of no use here: its python3 leads to /opt/python3.13, which is not "
            "on this host\nexit code 1\n");
}

TEST(Activation, WhatALogInSaysOfPythonDoesNotCountBesideANamedEnvironment) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "env/conda-meta");
  const std::string script = folder.write("script", "export A=b\n").string();
  const std::string before = "export PYTHONPATH=/x PYTHONHOME=/y\n";
  const std::string after = "echo \"${PYTHONPATH-none} ${PYTHONHOME-none} ${left_out[*]}\"\n";
  const auto with = [&](const std::string& path) {
    return run_bash(before + kFault +
                    environment_script({{}, path, std::nullopt, Torchrun::no}, {}) +
                    "ready_software / /\n" + after);
  };
  EXPECT_EQ(with(folder.path().string() + "/env"), "none none PYTHONPATH=/x PYTHONHOME=/y\n");
  EXPECT_EQ(with(script), "/x /y \n") << "it may be made for that";
}

}  // namespace
}  // namespace dtool::cli
