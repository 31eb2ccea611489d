// SPDX-License-Identifier: MIT
#include "trainer/settings/experiment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "tests/trainer/experiment_text.h"
#include "trainer/launch/launch.h"
#include "trainer/settings/toml_reader.h"
#include "trainer/settings/usage_error.h"
#include "trainer/supervised/supervised_settings.h"

using namespace dtool::trainer;

namespace {

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

Experiment experiment_in(const std::string& text) {
  return experiment_of(text, "experiment_test.toml");
}

const SupervisedSettings& supervised_of(const Experiment& experiment) {
  return dynamic_cast<const SupervisedSettings&>(*experiment.own);
}

const std::filesystem::path kSource = DTOOL_SOURCE_DIR;

}  // namespace

TEST(Experiment, ATorchScriptModuleMayUseAllThreadsOfItsRank) {
  const auto threads = [](const std::string& text) {
    return useful_threads(16, 2, experiment_in(text).own->multiply_adds_per_batch({2, 1}));
  };
  EXPECT_EQ(threads("workload = 'torchscript'\nmodel.file = 'model.pt'\nmodel.loss = 'mse'\n"
                    "data.source = 'digits'\n"),
            8);
  EXPECT_EQ(threads("workload = 'classifier'\ndata.source = 'digits'\n"), 1);
}

TEST(Experiment, ARankMayBeSilentForAsLongAsItsMachineUnderDtool) {
  const auto standard = [](const std::optional<std::string>& lost_after) {
    return standard_heartbeat_timeout([&](const std::string& name) {
      return name == "DTOOL_LOST_AFTER" ? lost_after : std::nullopt;
    });
  };
  EXPECT_EQ(standard(std::nullopt), 60);
  EXPECT_EQ(standard("600"), 600);
  EXPECT_EQ(standard("9"), 9);
  EXPECT_EQ(standard("1"), 5);
  for (const char* text : {"", "soon", "9s", "99999999999999999999"})
    EXPECT_EQ(standard(text), 60) << text;

  const auto of_experiment = [](const std::string& more) {
    return experiment_in("workload = 'classifier'\ndata.source = 'digits'\n" + more)
        .distributed.heartbeat_timeout.count();
  };
  ASSERT_EQ(setenv("DTOOL_LOST_AFTER", "600", 1), 0);
  EXPECT_EQ(of_experiment(""), 600);
  EXPECT_EQ(of_experiment("distributed.heartbeat_timeout_seconds = 30\n"), 30);
  unsetenv("DTOOL_LOST_AFTER");
  EXPECT_EQ(of_experiment(""), 60);
}

TEST(Experiment, TheShippedOnesTrainTheSmallNetwork) {
  for (const char* name : {"digits.toml", "mnist.toml"}) {
    const auto experiment = read_experiment(kSource / "trainer/experiments" / name);
    EXPECT_EQ(experiment.workload, "classifier");
    const SupervisedSettings& settings = supervised_of(experiment);
    ASSERT_EQ(settings.model.layers.size(), 2U);
    EXPECT_EQ(settings.model.layers[0].words, "linear 50");
    ASSERT_EQ(settings.train.stages.size(), 1U);
    EXPECT_EQ(settings.train.stages[0].epochs, 5);
    EXPECT_EQ(settings.train.stages[0].batch_size, 64);
    EXPECT_DOUBLE_EQ(experiment.optimizer.learning_rate, 1e-3);
  }
}

TEST(Experiment, TheDocumentationsExampleParsesAndGivesEveryKeyOfItsTable) {
  const std::string page = text_of(kSource / "docs/experiment.md");
  for (const char* workload : {"classifier", "objectnav"}) {
    const std::string fence = "```toml\nworkload = \"" + std::string(workload) + "\"";
    const auto begin = page.find(fence);
    ASSERT_NE(begin, std::string::npos);
    const auto end = page.find("```", begin + 8);
    const auto experiment = experiment_in(page.substr(begin + 8, end - begin - 8));
    std::set<std::string> given;
    for (const auto& each : experiment.settings) {
      if (each.origin == Origin::given) given.insert(each.key);
      EXPECT_NE(page.find("`" + each.key + "`"), std::string::npos)
          << each.key << " is not documented";
    }
    EXPECT_EQ(given.size(), experiment.settings.size()) << "the example leaves keys out";
  }
  // One source of data rules the other's keys out.
  for (const char* key : {"data.train_samples", "data.test_samples", "data.drawing_seed"}) {
    EXPECT_NE(page.find("`" + std::string(key) + "`"), std::string::npos) << key;
  }
}

TEST(Experiment, ThoseThatComeWithDtoolGoByTheirNames) {
  EXPECT_TRUE(read_experiment("objectnav").own->has_episodes());
  EXPECT_FALSE(read_experiment("digits").own->has_episodes());
  try {
    read_experiment("objectnaf");
    FAIL() << "there is none";
  } catch (const UsageError& mistake) {
    EXPECT_STREQ(mistake.what(), "no experiment file at objectnaf");
    EXPECT_EQ(
        mistake.hint,
        "these come with dtool: autoencoder, cartpole, digits, doorkey, doorkey_pixels, mnist, "
        "objectnav, objectnav_large, objectnav_pixels, objectnav_rooms, regression, "
        "vizdoom_basic");
  }
}

TEST(Experiment, TheSettingsTableMarksOrCountsDefaults) {
  const auto experiment =
      experiment_in("workload = 'classifier'\ndata.source = 'digits'\ntrain.epochs = 7\n");
  const auto table = settings_table(experiment.settings, Shown::all);
  EXPECT_NE(table.find("train.epochs                            7\n"), std::string::npos) << table;
  EXPECT_NE(table.find("train.batch_size                        64        (default)\n"),
            std::string::npos)
      << table;
  const auto given = settings_table(experiment.settings, Shown::given);
  EXPECT_EQ(given.substr(0, given.find("  and ")),
            "  workload      classifier\n  data.source   digits\n  train.epochs  7\n");
  EXPECT_NE(given.find(" defaults (dtool-trainer --verbose shows all)\n"), std::string::npos);
}

TEST(Experiment, AWholeNumberServesWhereANumberIsMeant) {
  const auto experiment = experiment_in(
      "workload = 'classifier'\ndata.source = 'digits'\noptimizer.learning_rate = 1\n");
  EXPECT_DOUBLE_EQ(experiment.optimizer.learning_rate, 1.0);
}

TEST(Experiment, TheLearningRateGrowsWithTheRanksAsAsked) {
  EXPECT_DOUBLE_EQ(scaled_learning_rate(0.1, Scaling::none, 4), 0.1);
  EXPECT_DOUBLE_EQ(scaled_learning_rate(0.1, Scaling::linear, 4), 0.4);
  EXPECT_DOUBLE_EQ(scaled_learning_rate(0.1, Scaling::sqrt, 4), 0.2);
}

TEST(Experiment, EveryExampleOfTheDocumentationParses) {
  int examples = 0;
  for (const char* name : {"docs/experiment.md", "docs/workloads.md"}) {
    const std::string page = text_of(kSource / name);
    for (auto begin = page.find("```toml\n"); begin != std::string::npos;
         begin = page.find("```toml\n", begin + 8)) {
      std::string text = page.substr(begin + 8, page.find("```", begin + 8) - begin - 8);
      // A part of an experiment, such as its stages, is shown alone.
      if (!text.starts_with("workload")) {
        text = "workload = 'classifier'\ndata.source = 'digits'\n" + text;
      }
      EXPECT_NO_THROW(experiment_in(text)) << name << '\n' << text;
      ++examples;
    }
  }
  EXPECT_GE(examples, 5);
}

TEST(Experiment, StagesHaveTheirOwnLengthAndTakeTheRestFromTrain) {
  const auto experiment = experiment_in(
      "workload = 'classifier'\ndata.source = 'digits'\ntrain.batch_size = 32\n"
      "train.accumulate = 2\n[[stage]]\nepochs = 2\n[[stage]]\nsteps = 50\nbatch_size = 8\n"
      "repeats = 4\nlearning_rate = 0.5\n");
  const auto& stages = supervised_of(experiment).train.stages;
  ASSERT_EQ(stages.size(), 2U);
  EXPECT_EQ(stages[0].epochs, 2);
  EXPECT_EQ(stages[0].batch_size, 32);
  EXPECT_EQ(stages[0].accumulate, 2);
  EXPECT_DOUBLE_EQ(stages[0].learning_rate, 1e-3);
  EXPECT_EQ(stages[1].steps, 50);
  EXPECT_EQ(stages[1].epochs, 0);
  EXPECT_EQ(stages[1].batch_size, 8);
  EXPECT_EQ(stages[1].repeats, 4);
  EXPECT_DOUBLE_EQ(stages[1].learning_rate, 0.5);
}

TEST(Experiment, ABatchOfAMachineOrARunIsDealtOutEvenly) {
  EXPECT_EQ(batch_of_rank(128, BatchPer::rank, 4, 8), 128);
  EXPECT_EQ(batch_of_rank(128, BatchPer::machine, 4, 8), 32);
  EXPECT_EQ(batch_of_rank(128, BatchPer::run, 4, 8), 16);
  EXPECT_THROW(batch_of_rank(100, BatchPer::run, 4, 8), UsageError);
}

TEST(Experiment, MistakesNameTheKeyAndItsLine) {
  const std::string start = "workload = 'classifier'\ndata.source = 'digits'\n";
  const auto mistake_in = [&](const std::string& rest) -> std::string {
    try {
      experiment_in(start + rest);
    } catch (const UsageError& mistake) {
      return line_and_fault(mistake);
    }
    return "none";
  };
  EXPECT_EQ(mistake_in("[[stage]]\nbatch_size = 8\n"),
            ":3: stage[0] needs a length: epochs or steps, one of them");
  EXPECT_EQ(mistake_in("[[stage]]\nepochs = 2\nsteps = 5\n"),
            ":3: stage[0] needs a length: epochs or steps, one of them");
  EXPECT_EQ(mistake_in("[[stage]]\nepochs = 0\n"),
            ":4: stage[0].epochs must be from 1 to 1000000, not 0");
  EXPECT_EQ(mistake_in("[[stage]]\nepochs = 2\nbach_size = 5\n"),
            ":5: unknown key 'stage[0].bach_size'");
  EXPECT_EQ(mistake_in("stage = 3\n"),
            ":3: stage must be a list of tables, [[stage]], not a whole number");
  EXPECT_EQ(mistake_in("train.epochs = 2\n[[stage]]\nepochs = 2\n"),
            ":3: train.epochs does not go together with [[stage]], which has its own");
  EXPECT_EQ(mistake_in("train.batch_size = 0\n"),
            ":3: train.batch_size must be from 1 to 10000000, not 0");
  EXPECT_EQ(mistake_in("model.layers = ['conv 8']\n"),
            ":3: layer 'conv 8': the kernel must be from 1 to 1024, not ''");
  EXPECT_EQ(mistake_in("model.layers = ['relu']\nmodel.hidden = [5]\n"),
            ":4: model.hidden does not go together with model.layers");
  EXPECT_EQ(mistake_in("model.file = 'x'\n"),
            ":3: model.file is only for workload = \"torchscript\"");
  EXPECT_EQ(mistake_in("optimizer.momentum = 0.5\n"), ":3: optimizer.momentum is only for sgd");
  EXPECT_EQ(mistake_in("schedule.gamma = 0.5\n"),
            ":3: schedule.gamma is only for schedule.kind = \"step\" and \"multi_step\"");
  EXPECT_EQ(mistake_in("schedule.kind = 'multi_linear'\n"), ":3: schedule.pieces is missing");
  EXPECT_EQ(mistake_in("schedule.kind = 'cosine'\nschedule.unit = 'steps'\n"),
            ":3: schedule.length is missing");
  EXPECT_EQ(mistake_in("schedule.warm_up = -1\n"),
            ":3: schedule.warm_up must be from 0 to 1000000000, not -1");
  EXPECT_EQ(mistake_in("data.features = 3\n"),
            ":3: data.features is only for data.source = \"random\"");
}
