// SPDX-License-Identifier: MIT
// Which of a host's trainers is taken, and what becomes of the bundles that dtool brought.
#include "ssh/host/answers/trainers.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "ssh/host/child.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

namespace fs = std::filesystem;

const std::string kSentBundle(64, 'a');

class TrainersTest : public testing::Test {
 protected:
  TrainersTest() {
    fs::create_directories(folder_.path() / "bin");
    request_.trainer_version = "0.2.0";
    request_.machines = 3;
  }

  /// A trainer that says this of itself; with --check it is content.
  std::string trainer(const std::string& file, const std::string& says, int code = 0,
                      const std::string& check = "exit 0") const {
    const fs::path made = folder_.write(
        file,
        "#!/bin/sh\nif [ \"$*\" = --self_check ]; then echo \"$X $DTOOL_PYTORCH\" >> "
        "\"$HOME/asked\"; printf '" +
            says + "'; exit " + std::to_string(code) +
            "; fi\necho \"$X $*\" > \"$HOME/words\"\ncat \"$2\" > \"$HOME/seen\"\n" + check + "\n");
    fs::permissions(made, fs::perms::owner_all);
    return made;
  }
  std::string bundle_file(const std::string& hash = kSentBundle) const {
    return ".dtool/trainers/" + hash + "/dtool-trainer";
  }

  /// A bundle that was used so long ago.
  fs::path old_bundle(char sign, int days) const {
    const std::string hash(64, sign);
    trainer(bundle_file(hash), "");
    const fs::path made = folder_.path() / ".dtool/trainers" / hash;
    folder_.write(".dtool/trainers/" + hash + "/lib/libc10.so", "");
    fs::last_write_time(made, fs::file_time_type::clock::now() - std::chrono::hours(24 * days));
    return made;
  }

  CheckReply find() const {
    CheckReply reply;
    find_trainer(request_, {"env", "X=inside"}, reply);
    return reply;
  }

  const tests::TemporaryFolder folder_;
  const tests::TemporaryVariable home_{"HOME", folder_.path()};
  const tests::TemporaryVariable path_{"PATH", folder_.path().string() + "/bin:/usr/bin:/bin"};
  const tests::TemporaryVariable python_path_{"PYTHONPATH", folder_.path() / "python"};
  const tests::TemporaryVariable pytorch_{kPyTorchVariable, ""};
  CheckRequest request_;
};

const std::string kFitTrainer = "dtool-trainer 0.2.0 (CUDA 13)\\n";

TEST_F(TrainersTest, TheFirstOneThatIsFitIsTaken) {
  request_.trainer = trainer("own", "dtool-trainer 0.1.0 (old)\\n");
  const std::string second = trainer(".dtool/bin/dtool-trainer", kFitTrainer);
  trainer("bin/dtool-trainer", "dtool-trainer 0.2.0 (of the system)\\n");
  const CheckReply reply = find();
  EXPECT_EQ(reply.trainer, second);
  EXPECT_EQ(reply.trainer_version, "dtool-trainer 0.2.0 (CUDA 13)");
  EXPECT_TRUE(reply.is_trainer_fit);
  EXPECT_EQ(reply.missing_libraries, "");
  EXPECT_EQ(reply.processor, "");
  EXPECT_EQ(reply.libc, "");
  EXPECT_EQ(folder_.read("asked"), "inside \ninside \n") << "the third one is not asked";
  EXPECT_FALSE(fs::exists(folder_.path() / "words")) << "there is no experiment to check";
}

TEST_F(TrainersTest, WithoutAFitOneTheFirstIsToldAndWhatThisHostIs) {
  folder_.write("python/torch/__init__.py", "");
  folder_.write("python/torch/version.py", "__version__ = '2.9.1+cu130'\n");
  request_.trainer = trainer("own", "dtool-trainer 0.2.0 x\\nmissing: libcuda.so.1\\n", 1);
  trainer("bin/dtool-trainer", "dtool-trainer 0.2.01 x\\nmissing: another\\n");
  const CheckReply reply = find();
  EXPECT_EQ(reply.trainer, request_.trainer);
  EXPECT_EQ(reply.trainer_version, "dtool-trainer 0.2.0 x");
  EXPECT_FALSE(reply.is_trainer_fit);
  EXPECT_EQ(reply.missing_libraries, "libcuda.so.1");
  utsname system{};
  ::uname(&system);
  EXPECT_EQ(reply.processor, system.machine);
  EXPECT_TRUE(reply.libc.starts_with("glibc ")) << reply.libc;
  EXPECT_EQ(reply.pytorch.folder, folder_.path() / "python/torch");
  EXPECT_EQ(reply.pytorch.version, "2.9.1+cu130");
}

TEST_F(TrainersTest, WithoutAnyNoneIsTold) {
  const CheckReply reply = find();
  EXPECT_EQ(reply.trainer, "");
  EXPECT_EQ(reply.trainer_version, "");
  EXPECT_FALSE(reply.is_trainer_fit);
  EXPECT_NE(reply.processor, "");
}

TEST_F(TrainersTest, ABundleThatDoesNotRunIsToldBeforeOthersThatAreNotFit) {
  trainer("bin/dtool-trainer", "dtool-trainer 0.1.0 x\\n");
  request_.bundle = kSentBundle;
  const std::string sent =
      trainer(bundle_file(), "dtool-trainer 0.2.0 x\\nmissing: GLIBC_2.38\\n", 1);
  const CheckReply reply = find();
  EXPECT_EQ(reply.trainer, sent);
  EXPECT_EQ(reply.missing_libraries, "GLIBC_2.38");
}

TEST_F(TrainersTest, ABundleThatIsTakenMakesUnusedOnesGo) {
  request_.bundle = kSentBundle;
  const std::string sent = trainer(bundle_file(), kFitTrainer);
  const fs::path unused = old_bundle('b', 31);
  const fs::path recent = old_bundle('c', 29);
  const fs::path needed = old_bundle('d', 31);
  folder_.write(".dtool/runs/r/machine0/script", "exec " + (needed / "dtool-trainer").string());
  EXPECT_EQ(find().trainer, sent);
  EXPECT_FALSE(fs::exists(unused));
  EXPECT_TRUE(fs::exists(recent / "lib/libc10.so"));
  EXPECT_TRUE(fs::exists(needed / "lib/libc10.so"));
}

TEST_F(TrainersTest, AnotherThatIsTakenLeavesTheBundlesAlone) {
  request_.bundle = kSentBundle;
  trainer(bundle_file(), kFitTrainer);
  const fs::path unused = old_bundle('b', 31);
  const std::string taken = trainer("bin/dtool-trainer", kFitTrainer);
  EXPECT_EQ(find().trainer, taken);
  EXPECT_TRUE(fs::exists(unused));
}

TEST_F(TrainersTest, ABundleWithoutALibTorchIsLentThatOfItsPyTorch) {
  folder_.write("python/torch/__init__.py", "");
  folder_.write("python/torch/version.py", "__version__ = '2.9.1+cu130'\n");
  request_.bundle = kSentBundle;
  request_.bundle_pytorch = "2.9.1+cu130";
  const std::string sent = trainer(bundle_file(), kFitTrainer);
  EXPECT_EQ(find().trainer, sent);
  EXPECT_EQ(folder_.read("asked"), "inside " + (folder_.path() / "python/torch").string() + "\n");
  request_.bundle_pytorch = "2.9.1";
  const CheckReply reply = find();
  EXPECT_EQ(reply.trainer, "") << "it is another PyTorch";
  EXPECT_EQ(reply.pytorch.version, "2.9.1+cu130");
}

TEST_F(TrainersTest, ABundleIsNotAskedWhereTheLoaderCannotFindItsPyTorch) {
  folder_.write("a;b/torch/__init__.py", "");
  folder_.write("a;b/torch/version.py", "__version__ = '2.9.1+cu130'\n");
  const tests::TemporaryVariable odd("PYTHONPATH", folder_.path() / "a;b");
  request_.bundle = kSentBundle;
  request_.bundle_pytorch = "2.9.1+cu130";
  trainer(bundle_file(), kFitTrainer);
  EXPECT_EQ(find().trainer, "");
  EXPECT_EQ(folder_.read("asked"), "");
}

TEST_F(TrainersTest, TheExperimentIsCheckedByTheTrainerThatIsTaken) {
  request_.experiment.text = "steps = 1";
  request_.trainer =
      trainer("own", kFitTrainer, 0, "echo \"out of $2\"; echo \"bad: $2\" >&2; exit 2");
  EXPECT_EQ(find().experiment_fault, "out of experiment bad: experiment");
  EXPECT_EQ(folder_.read("seen"), "steps = 1\n");
  const std::string words = folder_.read("words");
  constexpr std::string_view kBefore = "inside --check /tmp/dtool_experiment.";
  constexpr std::string_view kBehind =
      " --distributed_nodes 3 --distributed_ip_and_port 127.0.0.1:1\n";
  EXPECT_EQ(words.substr(0, kBefore.size()), kBefore);
  ASSERT_GT(words.size(), kBefore.size() + kBehind.size());
  EXPECT_EQ(words.substr(words.size() - kBehind.size()), kBehind);
  const std::string file = words.substr(15, words.size() - 15 - kBehind.size());
  EXPECT_FALSE(fs::exists(file)) << file;
  request_.trainer = trainer("own", kFitTrainer, 0, "echo fine");
  EXPECT_EQ(find().experiment_fault, "");
  EXPECT_NE(folder_.read("words"), words);
}

}  // namespace
}  // namespace dtool::host
