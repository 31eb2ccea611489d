// SPDX-License-Identifier: MIT
// The loop around a workload, and how a run goes on from a checkpoint: which calls are made when,
// what is kept, and which checkpoints are refused.
#include "trainer/training/training.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <system_error>

#include "tests/trainer/own_folder.h"
#include "trainer/launch/requests.h"
#include "trainer/settings/usage_error.h"
#include "trainer/training/checkpoint_keeper.h"
#include "trainer/training/checkpoint_reader.h"
#include "trainer/training/checkpoint_writer.h"
#include "trainer/training/snapshot.h"

using namespace dtool::trainer;
namespace fs = std::filesystem;

namespace {

struct TwoNumbers : Weights {
  std::vector<NamedTensor> parameters() const override { return {{"weight", weight}}; }
  std::vector<NamedTensor> buffers() const override { return {}; }
  at::Tensor weight = at::zeros({2}).requires_grad_(true);
};

/// Notes its calls. A step adds 1 to its weight.
struct NotedWorkload : Workload {
  Weights& model() override { return model_; }
  Optimizer& optimizer() override { return optimizer_; }
  std::size_t stages() const override { return 1; }
  void restore(const std::vector<NamedTensor>& others) override {
    calls += "restore " + others.at(0).name + "\n";
  }
  std::vector<NamedTensor> others() override { return {{"samplers", at::zeros({1})}}; }
  void begin() override { calls += "begin\n"; }
  bool is_over() const override { return progress.steps >= last; }
  Position position() const override { return {epoch, 0, progress.steps, 0.5}; }
  Advance advance(const std::function<int()>& asked, ProgressLog* log) override {
    EXPECT_EQ(log == nullptr, rank > 0);
    ++progress.steps;
    model_.weight.detach().add_(1);
    if (progress.steps == requested_at) pass_request(requested);
    if (progress.steps == raised_at) raise(requested);
    return {asked(), progress.steps == evaluated_at, progress.steps == kept_at};
  }
  void tell(const Due& due, ProgressLog*) override { note("tell", due); }
  Evaluation evaluate(ProgressLog*) override {
    calls += "evaluate\n";
    if (progress.steps == left_at) return {{}, Better::higher};
    return {{{"other", 2}, {"score", static_cast<double>(progress.steps)}}, Better::higher};
  }
  void close(const Due& due, const Scores& scores, ProgressLog*) override {
    note("close", due);
    if (!scores.empty()) calls.insert(calls.size() - 1, " " + scores[1].first);
  }
  void restart_clock() override {
    calls += "clock\n";
    if (progress.steps == requested_after) pass_request(requested);
  }

  void note(const std::string& name, const Due& due) {
    calls += std::to_string(progress.steps) + " " + name + (due.line ? " line" : "") +
             (due.evaluation ? " evaluation" : "") + (due.checkpoint ? " checkpoint" : "") + "\n";
  }

  std::int64_t last = 5, evaluated_at = 0, kept_at = 0, requested_at = 0;
  std::int64_t raised_at = 0, epoch = 0, requested_after = 0, left_at = 0;
  int requested = SIGUSR1, rank = 0;
  TwoNumbers model_;
  Optimizer optimizer_{tensors_of(model_.parameters()), OptimizerSettings{}};
  std::string calls;
};

class Loop : public OwnFolder {
 protected:
  Loop() {
    experiment_.checkpoint = {0, 0, 9, true};
    experiment_.distributed.collective_timeout = std::chrono::seconds(60);
    options_.output_dir = folder_;
    options_.seed = 7;
  }

  /// What the run says.
  std::string train(NotedWorkload& workload) {
    testing::internal::CaptureStdout();
    const dtool::trainer::Run run{experiment_, options_, meeting_, group_};
    dtool::trainer::train(run, workload);
    return testing::internal::GetCapturedStdout();
  }

  std::vector<std::int64_t> kept() const {
    std::vector<std::int64_t> steps;
    for (const auto& each : list_checkpoints(checkpoints_of(options_))) steps.push_back(each.step);
    return steps;
  }
  bool has_best() const { return fs::exists(best_checkpoint_file(checkpoints_of(options_))); }

  /// The mistake with which `--checkpoint` of this value is refused, and its hint, after the name
  /// of the folder; or the file's name.
  std::string chosen(const std::string& checkpoint) {
    options_.checkpoint = checkpoint;
    testing::internal::CaptureStdout();
    std::string result;
    try {
      result = checkpoint_of(options_).string();
    } catch (const UsageError& problem) {
      result = std::string(problem.what()) + " | " + problem.hint;
    }
    result = testing::internal::GetCapturedStdout() + result;
    const std::string folder = folder_.string() + "/";
    for (auto at = result.find(folder); at != result.npos; at = result.find(folder)) {
      result.erase(at, folder.size());
    }
    return result;
  }

  Experiment experiment_;
  CommandLine options_;
  const Meeting meeting_;
  const Group group_;
};

using Steps = std::vector<std::int64_t>;

}  // namespace

TEST_F(Loop, TellsEvaluatesAndKeepsWhenEachIsDue) {
  experiment_.checkpoint.every_steps = 2;
  experiment_.log_every_steps = 3;
  NotedWorkload workload;
  workload.evaluated_at = 1;
  EXPECT_EQ(train(workload), "score 5.0000\n");
  EXPECT_EQ(workload.calls,
            "begin\n"
            "1 tell evaluation\nevaluate\n1 close evaluation score\nclock\n"
            "2 tell checkpoint\n2 close checkpoint score\nclock\n"
            "3 tell line\n3 close line score\n"
            "4 tell checkpoint\n4 close checkpoint score\nclock\n"
            "5 tell evaluation checkpoint\nevaluate\n5 close evaluation checkpoint score\nclock\n");
  EXPECT_EQ(kept(), (Steps{2, 4, 5}));
  EXPECT_TRUE(has_best());
  EXPECT_EQ(workload.progress.seed, 7u);
  EXPECT_EQ(workload.progress.world_size, 1);
  EXPECT_EQ(workload.progress.best_score, 5);
}

TEST_F(Loop, KeepsNothingWhereNothingIsToBeKept) {
  experiment_.checkpoint.best = false;
  NotedWorkload workload;
  workload.last = 1;
  workload.kept_at = 1;
  train(workload);
  EXPECT_EQ(workload.calls,
            "begin\n1 tell evaluation\nevaluate\n1 close evaluation score\nclock\n");
  EXPECT_EQ(kept(), Steps{});
  EXPECT_FALSE(has_best());
}

TEST_F(Loop, KeepsAtEpochsToo) {
  experiment_.checkpoint.every_epochs = 1;
  NotedWorkload workload;
  workload.kept_at = 3;
  train(workload);
  EXPECT_EQ(kept(), (Steps{3, 5}));
}

TEST_F(Loop, MakesUpForAValidationThatWasLeft) {
  experiment_.checkpoint.every_steps = 100;
  NotedWorkload first;
  first.evaluated_at = first.left_at = 2;
  train(first);
  options_.checkpoint = checkpoint_file(checkpoints_of(options_), 2).string();
  NotedWorkload second;
  train(second);
  EXPECT_TRUE(second.calls.starts_with("restore samplers\nbegin\nevaluate\nclock\n3 tell"))
      << second.calls;
}

TEST_F(Loop, GoesOnFromTheLatestCheckpoint) {
  experiment_.checkpoint.every_steps = 2;
  options_.checkpoint = "auto";
  NotedWorkload first;
  first.last = 2;
  EXPECT_EQ(train(first), "score 2.0000\n") << "there is none";
  NotedWorkload second;
  second.last = 3;
  const auto file = checkpoint_file(checkpoints_of(options_), 2).string();
  EXPECT_EQ(train(second), "resumed from " + file + " at step 2\nscore 3.0000\n");
  EXPECT_TRUE(second.calls.starts_with("restore samplers\nbegin\n3 tell")) << second.calls;
  EXPECT_EQ(second.model_.weight[1].item<float>(), 3);
  NotedWorkload third;
  third.last = 3;
  train(third);
  EXPECT_EQ(third.calls, "restore samplers\nbegin\nevaluate\n") << "it is over";
  NotedWorkload fourth;
  fourth.last = 3;
  fourth.epoch = 1;
  const auto latest = checkpoint_file(checkpoints_of(options_), 3).string();
  EXPECT_EQ(train(fourth), "resumed from " + latest + " at epoch 1, step 3\nscore 3.0000\n");
}

TEST_F(Loop, OnlyTheNewestCheckpointsStay) {
  experiment_.checkpoint = {0, 1, 2, false};
  NotedWorkload workload;
  train(workload);
  EXPECT_EQ(kept(), (Steps{4, 5}));
}

TEST_F(Loop, SignalsAreRequestsUntilTheLastStepAndEndTheProcessAfterIt) {
  at::set_num_threads(1);  // others would be missing in a forked process
  experiment_.checkpoint.every_steps = 100;
  NotedWorkload workload;
  workload.raised_at = 3;
  const auto work = [&] {
    const dtool::trainer::Run run{experiment_, options_, meeting_, group_};
    dtool::trainer::train(run, workload);
    raise(SIGTERM);
    _exit(0);
  };
  EXPECT_EXIT(work(), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EQ(kept(), (Steps{3, 5}));
}

TEST_F(Loop, ARequestIsAnsweredByTheStateOfItsStep) {
  experiment_.checkpoint.every_steps = 100;
  NotedWorkload workload;
  workload.requested_at = 3;
  EXPECT_EQ(train(workload), "checkpoint written: step 3, since SIGUSR1 came\nscore 5.0000\n");
  EXPECT_EQ(kept(), (Steps{3, 5}));
}

TEST_F(Loop, ARequestAtTheEndIsAnsweredByTheLastCheckpoint) {
  experiment_.checkpoint.every_steps = 100;
  NotedWorkload workload;
  workload.requested_at = 5;
  EXPECT_EQ(train(workload), "checkpoint written: step 5, since SIGUSR1 came\nscore 5.0000\n");
  EXPECT_EQ(kept(), Steps{5});
}

TEST_F(Loop, ARequestAfterTheLastStepIsTakenIfThatStepHasACheckpoint) {
  experiment_.checkpoint.every_steps = 100;
  NotedWorkload workload;
  workload.requested_after = 5;
  EXPECT_EQ(train(workload), "checkpoint written: step 5, since SIGUSR1 came\nscore 5.0000\n");
  EXPECT_EQ(kept(), Steps{5});
  EXPECT_EQ(take_request(), 0);
  experiment_.checkpoint.every_steps = 0;
  options_.output_dir = folder_ / "none";
  NotedWorkload without;
  without.requested_after = 5;
  EXPECT_EQ(train(without), "score 5.0000\n");
  EXPECT_EQ(kept(), Steps{});
  EXPECT_EQ(take_request(), SIGUSR1) << "nobody has answered it";
}

TEST_F(Loop, AnotherRankThan0MakesTheSameCallsAndWritesNothing) {
  experiment_.checkpoint.every_steps = 2;
  NotedWorkload first;
  first.evaluated_at = 1;
  train(first);
  options_.output_dir = folder_ / "none";
  NotedWorkload second;
  second.evaluated_at = 1;
  second.rank = 1;
  Group group;
  group.rank = 1;
  pass_request(SIGUSR1);
  testing::internal::CaptureStdout();
  const dtool::trainer::Run run{experiment_, options_, meeting_, group};
  dtool::trainer::train(run, second);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(second.calls, first.calls);
  EXPECT_FALSE(fs::exists(options_.output_dir));
  EXPECT_EQ(take_request(), SIGUSR1) << "only rank 0 takes it";
}

TEST_F(Loop, ARequestIsRefusedWhileTheModelIsNoNumber) {
  experiment_.checkpoint.every_steps = 100;
  NotedWorkload workload;
  workload.model_.weight.detach()[1].fill_(std::numeric_limits<float>::infinity());
  workload.requested_at = 3;
  EXPECT_EQ(
      train(workload),
      "no checkpoint, a parameter is nan or infinite: step 3, since SIGUSR1 came\nscore 5.0000\n");
  EXPECT_EQ(kept(), Steps{5});
}

TEST(PassMultiple, CountsFromBeforeToNow) {
  EXPECT_FALSE(pass_multiple(0, 4, 5));
  EXPECT_TRUE(pass_multiple(0, 5, 5));
  EXPECT_TRUE(pass_multiple(4, 6, 5));
  EXPECT_FALSE(pass_multiple(5, 9, 5));
  EXPECT_TRUE(pass_multiple(5, 15, 5));
  EXPECT_TRUE(pass_multiple(1, 2, 1));
  EXPECT_FALSE(pass_multiple(0, 9, 0));
}

TEST_F(Loop, OnlyTheBestScoreIsKept) {
  CheckpointSettings settings{0, 3, 9, true};
  NotedWorkload workload;
  fs::create_directories(checkpoints_of(options_));
  ProgressLog log(folder_, TensorBoard::off, RunStart{});
  CheckpointKeeper keeper(group_, options_, settings, std::chrono::seconds(60), workload.model(),
                          workload.optimizer(), workload.progress);
  const auto keeps = [&](double score, Better better) {
    fs::remove(best_checkpoint_file(checkpoints_of(options_)));
    ++workload.progress.steps;
    keeper.take_score(score, better);
    keeper.finish(log);
    return has_best();
  };
  EXPECT_TRUE(keeps(0.5, Better::higher)) << "the first";
  EXPECT_FALSE(keeps(0.4, Better::higher));
  EXPECT_FALSE(keeps(0.5, Better::higher));
  EXPECT_TRUE(keeps(0.6, Better::higher));
  EXPECT_FALSE(keeps(0.7, Better::lower));
  EXPECT_FALSE(keeps(0.6, Better::lower));
  EXPECT_TRUE(keeps(0.3, Better::lower));
  EXPECT_EQ(workload.progress.best_score, 0.3);
  settings.best = false;
  EXPECT_FALSE(keeps(0.2, Better::lower));
  EXPECT_EQ(workload.progress.best_score, 0.2);
  EXPECT_EQ(keeper.kept_step(), -1);
  EXPECT_TRUE(keeper.is_due(5)) << "8 steps now, and 6 is one";
  EXPECT_FALSE(keeper.is_due(6));
}

TEST_F(Loop, TheBestModelIsTheOneOfItsStep) {
  CheckpointSettings settings{0, 1, 9, true};
  NotedWorkload workload;
  fs::create_directories(checkpoints_of(options_));
  ProgressLog log(folder_, TensorBoard::off, RunStart{});
  CheckpointKeeper keeper(group_, options_, settings, std::chrono::seconds(60), workload.model(),
                          workload.optimizer(), workload.progress);
  for (const float value : {1.F, 2.F}) {
    ++workload.progress.steps;
    workload.model_.weight.detach().fill_(value);
    keeper.take_score(value, Better::higher);
    keeper.keep(workload.others());
    keeper.finish(log);
    for (const auto& file : {best_checkpoint_file(checkpoints_of(options_)),
                             checkpoint_file(checkpoints_of(options_), workload.progress.steps)}) {
      TwoNumbers model;
      CheckpointReader reader(group_, "", CheckpointFile(file));
      EXPECT_EQ(restore_model(reader, model).steps, workload.progress.steps);
      EXPECT_EQ(model.weight[0].item<float>(), value);
    }
  }
}

TEST_F(Loop, TheNewestWholeCheckpointIsChosen) {
  const std::string none = "--checkpoint latest: none in " +
                           (folder_ / "checkpoints").string().substr(folder_.string().size() + 1);
  EXPECT_EQ(chosen("latest"), none + " | give the same --output_dir as the earlier training");
  EXPECT_EQ(chosen("auto"), "");
  const auto folder = checkpoints_of(options_);
  fs::create_directories(folder);
  std::ofstream(folder / "step_000000001.pt") << "x";
  EXPECT_EQ(chosen("auto"), "checkpoints/step_000000001.pt");
  experiment_.checkpoint.every_steps = 1;
  options_.checkpoint.reset();
  NotedWorkload workload;
  workload.last = 3;
  train(workload);
  const auto time = fs::last_write_time(checkpoint_file(folder, 3));
  for (const int step : {1, 2, 3}) {
    fs::last_write_time(checkpoint_file(folder, step), time - std::chrono::seconds(3 - step));
  }
  EXPECT_EQ(chosen("latest"), "checkpoints/step_000000003.safetensors");
  const auto spoil = [&](int step) {
    const auto before = fs::last_write_time(checkpoint_file(folder, step));
    fs::resize_file(checkpoint_file(folder, step), 4);
    fs::last_write_time(checkpoint_file(folder, step), before);
  };
  spoil(3);
  EXPECT_EQ(chosen("auto"),
            "note: checkpoints/step_000000003.safetensors is no checkpoint: it is too short; an "
            "older one is looked for\ncheckpoints/step_000000002.safetensors");
  spoil(2);
  spoil(1);
  EXPECT_TRUE(chosen("latest").ends_with(
      "checkpoints/step_000000001.safetensors is no checkpoint: it is too short, and no checkpoint "
      "beside it is whole | "));
  const auto best = best_checkpoint_file(folder);
  EXPECT_EQ(chosen(best.string()), "checkpoints/best.safetensors");
  EXPECT_EQ(chosen((folder_ / "no").string()), "no checkpoint at no | ");
  EXPECT_EQ(chosen(folder.string()), "no checkpoint at checkpoints | ") << "a folder is no file";
}

TEST_F(Loop, ACheckpointOfAnotherRunIsRefused) {
  experiment_.checkpoint.every_steps = 1;
  NotedWorkload workload;
  workload.last = 1;
  workload.progress.training_samples = 100;
  workload.progress.samples = 1;
  workload.progress.stage = 1;
  train(workload);
  options_.checkpoint = "latest";
  const auto resume = [&](const Progress& fresh, std::size_t stages) {
    testing::internal::CaptureStdout();
    std::string result;
    try {
      const auto resumed =
          resume_from(options_, group_, workload.model(), workload.optimizer(), fresh, stages);
      EXPECT_EQ(resumed.progress.seed, fresh.seed);
      EXPECT_EQ(resumed.progress.world_size, fresh.world_size);
      EXPECT_EQ(resumed.saved_world_size, 1);
      EXPECT_EQ(resumed.progress.samples, 1);
    } catch (const UsageError& problem) {
      const std::string text = problem.what();
      result = text.substr(text.find(" does"));
    }
    return testing::internal::GetCapturedStdout() + result;
  };
  Progress fresh;
  fresh.seed = 7;
  fresh.training_samples = 100;
  EXPECT_EQ(resume(fresh, 2), "");
  EXPECT_EQ(resume(fresh, 1),
            " does not fit: it was written in stage 2 of an experiment, this one has 1");
  fresh.world_size = 2;
  EXPECT_EQ(resume(fresh, 2),
            "note: the checkpoint is of a run with seed 7 on 1 ranks, this one has seed 7 on 2\n");
  fresh.seed = 8;
  EXPECT_EQ(resume(fresh, 2),
            " does not fit: it was written within an epoch that seed 7 had shuffled, this run has "
            "seed 8");
  fresh.training_samples = 99;
  EXPECT_EQ(resume(fresh, 2),
            " does not fit: its data had 100 training samples, this run's has 99");
}

TEST_F(Loop, ACheckpointFromElsewhereWithNumbersThatNoRunHasIsRefused) {
  experiment_.checkpoint.every_steps = 1;
  NotedWorkload workload;
  workload.last = 1;
  workload.progress.training_samples = 100;
  train(workload);
  const auto refusal_with = [&](const std::string& key, const std::string& number) {
    const auto file = folder_ / "edited.safetensors";
    std::ifstream original(checkpoint_file(folder_ / "checkpoints", 1), std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(original), {});
    const auto at = bytes.find("\"" + key + "\":\"") + key.size() + 4;
    const auto end = bytes.find('"', at);
    bytes.replace(at, end - at, number);
    std::uint64_t size = 0;
    std::memcpy(&size, bytes.data(), sizeof size);
    size += number.size() - (end - at);
    std::memcpy(bytes.data(), &size, sizeof size);
    std::ofstream(file, std::ios::binary) << bytes;
    options_.checkpoint = file.string();
    Progress fresh;
    fresh.training_samples = 100;
    try {
      resume_from(options_, group_, workload.model(), workload.optimizer(), fresh, 1);
      return std::string("none");
    } catch (const UsageError& problem) {
      const std::string text = problem.what();
      return text.substr(text.find(" does not fit: ") + 15);
    }
  };
  for (const char* key : {"stage", "samples", "epochs", "stage_steps", "optimizer_steps"}) {
    EXPECT_EQ(refusal_with(key, "-1"), fmt::format("its metadata has no number for {} that a run "
                                                   "can have, but '-1'",
                                                   key));
  }
  EXPECT_EQ(refusal_with("samples", "101"), "it has 101 samples of an epoch of 100");
  EXPECT_EQ(refusal_with("stage", "1"),
            "it was written in stage 2 of an experiment, this one has 1");
}

TEST_F(Loop, AnotherSeedIsTakenBetweenEpochs) {
  experiment_.checkpoint.every_steps = 1;
  NotedWorkload workload;
  workload.last = 1;
  train(workload);
  options_.checkpoint = "latest";
  Progress fresh;
  fresh.seed = 8;
  testing::internal::CaptureStdout();
  resume_from(options_, group_, workload.model(), workload.optimizer(), fresh, 1);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "note: the checkpoint is of a run with seed 7 on 1 ranks, this one has seed 8 on 1\n");
}

TEST_F(Loop, TellsWhereTheEnvironmentIsAnotherThanTheCheckpoints) {
  experiment_.checkpoint.every_steps = 1;
  NotedWorkload workload;
  workload.last = 1;
  workload.progress.environment = {{"name", "Walk-v0"}, {"package", "walks 1.0"}, {"source", ""}};
  train(workload);
  std::ifstream file(folder_ / "environment.json");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}),
            "{\"name\": \"Walk-v0\", \"package\": \"walks 1.0\", \"source\": \"\"}\n");
  options_.checkpoint = "latest";
  const auto notes = [&](const std::map<std::string, std::string>& environment) {
    Progress fresh;
    fresh.seed = 7;
    fresh.environment = environment;
    testing::internal::CaptureStdout();
    const auto resumed =
        resume_from(options_, group_, workload.model(), workload.optimizer(), fresh, 1);
    EXPECT_EQ(resumed.progress.environment, environment) << "the next checkpoint has this run's";
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_EQ(notes(workload.progress.environment), "");
  EXPECT_EQ(notes({{"name", "Walk-v0"}, {"package", "walks 1.1"}, {"source", "5c5d"}}),
            "note: the environments' package is 'walks 1.1', in the checkpoint 'walks 1.0'\n"
            "note: the environments' source is '5c5d', in the checkpoint ''\n");
  EXPECT_EQ(notes({}), "");
}

TEST_F(Loop, TypesOfNumbersHaveTheirNames) {
  for (const auto* name : {"F32", "F64", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL"}) {
    EXPECT_STREQ(dtype_of(type_of({"a", name, {}})), name);
  }
  EXPECT_EQ(dtype_of(at::kComplexFloat), nullptr);
  EXPECT_EQ(at::elementSize(type_of({"a", "BF16", {}})), 2u);
  TwoNumbers model;
  model.weight = at::zeros({2}, at::kComplexFloat);
  try {
    check_types(model);
    FAIL() << "it is taken";
  } catch (const UsageError& problem) {
    EXPECT_STREQ(problem.what(),
                 "no checkpoint can hold weight, which has numbers of type ComplexFloat");
  }
}

TEST_F(Loop, ACheckpointFileIsReadWhereItHasBytes) {
  std::ofstream(folder_ / "a") << "abcdef";
  CheckpointFile none;
  EXPECT_FALSE(none.is_open());
  CheckpointFile file(folder_ / "a");
  none = std::move(file);
  const CheckpointFile moved(std::move(none));
  EXPECT_TRUE(moved.is_open());
  EXPECT_EQ(moved.size(), 6u);
  std::string bytes(3, ' ');
  moved.read(2, bytes.data(), 3);
  EXPECT_EQ(bytes, "cde");
  moved.read(99, bytes.data(), 0);
  moved.read(5, bytes.data(), 1);
  EXPECT_EQ(bytes, "fde");
  try {
    moved.read(4, bytes.data(), 3);
    FAIL() << "it has six bytes";
  } catch (const std::runtime_error& problem) {
    EXPECT_EQ(problem.what(), (folder_ / "a").string() + " has become shorter");
  }
  EXPECT_THROW(CheckpointFile(folder_ / "none"), std::system_error);
}

TEST_F(Loop, AFolderIsNoCheckpointFile) {
  const CheckpointFile file(folder_);
  char byte = 0;
  try {
    file.read(0, &byte, 1);
    FAIL() << "a folder has no bytes";
  } catch (const std::system_error& problem) {
    EXPECT_EQ(problem.code().value(), EISDIR);
    EXPECT_TRUE(std::string(problem.what()).starts_with("cannot read " + folder_.string()));
  }
}

TEST_F(Loop, ACheckpointFileIsClosedWithItsObjectWhateverItsNumber) {
  std::ofstream(folder_ / "a") << "abcdef";
  const auto next = [] {
    const int descriptor = dup(STDERR_FILENO);
    close(descriptor);
    return descriptor;
  };
  const int before = next();
  { const CheckpointFile file(folder_ / "a"); }
  EXPECT_EQ(next(), before);
  EXPECT_EXIT(
      {
        close(STDIN_FILENO);
        const bool is_open = CheckpointFile(folder_ / "a").is_open();
        _exit(is_open && next() == STDIN_FILENO ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}
