#include "trainer/experiment.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "trainer/settings_table.h"
#include "trainer/usage_error.h"

using namespace dtool::trainer;

namespace {

std::string read(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

Experiment parse(const std::string& text) {
  const auto file = std::filesystem::path(testing::TempDir()) / "experiment_test.toml";
  std::ofstream(file) << text;
  return read_experiment(file);
}

const std::filesystem::path kSource = DTOOL_SOURCE_DIR;

}  // namespace

TEST(Experiment, TheShippedOnesTrainTheSmallNetwork) {
  for (const char* name : {"digits.toml", "mnist.toml"}) {
    const auto experiment = read_experiment(kSource / "trainer/experiments" / name);
    EXPECT_EQ(experiment.workload, "classifier");
    EXPECT_EQ(experiment.model.hidden, std::vector<std::int64_t>{50});
    EXPECT_EQ(experiment.train.epochs, 5);
    EXPECT_EQ(experiment.train.batch_size, 64);
    EXPECT_DOUBLE_EQ(experiment.optimizer.learning_rate, 1e-3);
  }
}

TEST(Experiment, TheDocumentationsExampleParsesAndGivesEveryKeyOfItsTable) {
  const std::string page = read(kSource / "docs/experiment.md");
  const auto begin = page.find("```toml\n");
  ASSERT_NE(begin, std::string::npos);
  const auto end = page.find("```", begin + 8);
  const auto experiment = parse(page.substr(begin + 8, end - begin - 8));
  std::set<std::string> given;
  for (const auto& each : experiment.settings) {
    if (each.origin == Origin::given) given.insert(each.key);
    EXPECT_NE(page.find("`" + each.key + "`"), std::string::npos)
        << each.key << " is not documented";
  }
  // One source of data rules the other's keys out.
  for (const char* key : {"data.train_samples", "data.test_samples", "data.drawing_seed"}) {
    EXPECT_NE(page.find("`" + std::string(key) + "`"), std::string::npos) << key;
  }
  EXPECT_EQ(given.size(), experiment.settings.size()) << "the example leaves keys out";
}

TEST(Experiment, DefaultsAreMarkedInTheSettingsTable) {
  const auto experiment =
      parse("workload = 'classifier'\ndata.source = 'digits'\ntrain.epochs = 7\n");
  const auto table = settings_table(experiment.settings);
  EXPECT_NE(table.find("train.epochs                            7\n"), std::string::npos) << table;
  EXPECT_NE(table.find("train.batch_size                        64     (default)\n"),
            std::string::npos)
      << table;
}

TEST(Experiment, AWholeNumberServesWhereANumberIsMeant) {
  const auto experiment =
      parse("workload = 'classifier'\ndata.source = 'digits'\noptimizer.learning_rate = 1\n");
  EXPECT_DOUBLE_EQ(experiment.optimizer.learning_rate, 1.0);
}

TEST(Experiment, TheLearningRateGrowsWithTheRanksAsAsked) {
  OptimizerSettings optimizer{.learning_rate = 0.1, .scaling = Scaling::none};
  EXPECT_DOUBLE_EQ(scaled_learning_rate(optimizer, 4), 0.1);
  optimizer.scaling = Scaling::linear;
  EXPECT_DOUBLE_EQ(scaled_learning_rate(optimizer, 4), 0.4);
  optimizer.scaling = Scaling::sqrt;
  EXPECT_DOUBLE_EQ(scaled_learning_rate(optimizer, 4), 0.2);
}

TEST(TomlReader, TheNearestKeyIsSuggestedOnlyWhenNear) {
  const std::vector<std::string> known = {"train.epochs", "train.batch_size"};
  EXPECT_EQ(nearest("train.epoch", known), "train.epochs");
  EXPECT_EQ(nearest("train.batchsize", known), "train.batch_size");
  EXPECT_EQ(nearest("colour", known), "");
}
